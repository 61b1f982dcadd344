// The runs of an experiment as points: weights and test errors, and of the chosen run its numbers and the command
// that trains it again. The rows are in seeds-data.js, which is written when the book is built.
(() => {
  const { element, svg, number, slider, choice, Plot, start } = window.nalm;

  // What the weights amount to, [power of a, power of b]: the NMRU has two more, of the reciprocals.
  const powers = (weights) =>
    weights.length === 4 ? [weights[0] - weights[2], weights[1] - weights[3]] : weights.slice(0, 2);

  // The runs of a model on a range, in the order of their seeds.
  const runs = (data, model, range) => {
    const { key, rows } = data.runs[model][range];
    return rows.map(([seed, solved, solvedAt, test, valid, weights, gates]) => ({
      key: `${key}-${seed}`, seed, solved, solvedAt, test, valid, weights, gates, start: data.starts[model][seed],
    }));
  };
  const command = (data, run) => `make verify EXPERIMENT=${data.experiment} ARGS="--key ${run.key}"`;

  // Limits around values, with room for marks at the ends.
  const around = (values, least) => {
    const low = Math.min(...values), high = Math.max(...values), room = Math.max(0.06 * (high - low), least);
    return [low - room, high + room];
  };
  const tenTo = (power) => {
    const digits = [...String(power)].map((sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign]));
    return Number.isInteger(power) ? `10${digits.join("")}` : "";
  };

  const build = () => {
    const data = window.nalm.seedsData;
    const plane = new Plot({ label: "Weight of b over weight of a, a mark for each run", xlabel: "weight of a",
      ylabel: "weight of b", height: 320 });
    const errors = new Plot({ label: "Test error over the difference of the weights, a mark for each run",
      xlabel: "weight of a − weight of b", ylabel: "test error", height: 320, left: 52 });
    const said = element("output", { class: "nalm-said", "aria-live": "polite" });
    const ask = element("code", { class: "nalm-command", tabindex: "0" });
    const models = Object.keys(data.runs);
    const model = choice("Unit", models, models[1]);
    const range = choice("Training range", Object.keys(data.runs[models[0]]), "U[-2,2)");
    const when = choice("Weights", ["initial", "final"]);
    const chosen = slider({ label: "Run", min: 1, max: 1, step: 1, value: 1 });
    let found = []; // runs in the order of the slider, with their places

    const draw = () => {
      const initial = when.value === "initial";
      found = runs(data, model.value, range.value).map((run) => {
        const [a, b] = powers(initial ? run.start : run.weights);
        return { ...run, a, b, difference: a - b, error: Math.log10(run.test) };
      }).sort((one, other) => one.difference - other.difference || one.seed - other.seed);
      chosen.input.max = found.length;
      chosen.set(Math.min(chosen.value, found.length));
      const here = found[chosen.value - 1];

      const least = initial ? 0.05 : 0.15;
      const bounds = around(found.flatMap(({ a, b }) => [a, b]), least);
      plane.frame(bounds, bounds);
      plane.line(bounds.map((end) => [end, end]), { class: "nalm-exact" });
      errors.frame(around(found.map((run) => run.difference), 2 * least), around(found.map((run) => run.error), 0.5),
        undefined, tenTo);
      errors.axes.querySelectorAll(".nalm-zero").forEach((line) => line.setAttribute("class", "nalm-grid")); // 10⁰
      for (const [plot, place] of [[plane, ["a", "b"]], [errors, ["difference", "error"]]]) {
        for (const run of [...found.filter((one) => one !== here), here]) {
          const [x, y] = [plot.x(run[place[0]]), plot.y(run[place[1]])];
          const kind = `nalm-run ${run.solved ? "nalm-solved" : "nalm-failed"}`;
          if (run === here) plot.over.append(svg("circle", { cx: x, cy: y, r: 9, class: "nalm-chosen" }));
          plot.over.append(run.solved ? svg("circle", { cx: x, cy: y, r: 4, class: kind })
            : svg("path", { d: `M${x - 4},${y - 4}l8,8m0,-8l-8,8`, class: kind }));
        }
      }
      plane.legend([["● solved", "nalm-solved"], ["× failed", "nalm-failed"]].map(([text, kind]) =>
        ({ text, class: `nalm-key ${kind}` })));

      const list = (values) => values.map((value) => number(value, 3)).join(", ");
      said.textContent = `Seed ${here.seed}, ${here.solved ? `solved at iteration ${here.solvedAt.toLocaleString("en")}` : "failed"}. ` +
        `Initial weights ${list(here.start)}; final weights ${list(here.weights)}` +
        `${here.gates.length ? `, gates ${list(here.gates)}` : ""}. ` +
        `Error on the test range ${number(here.test, 3)}, on the training range ${number(here.valid, 3)}. Train it again:`;
      ask.textContent = command(data, here);
    };

    // A click takes the run whose mark is next to it.
    const pick = (plot, place) => plot.root.addEventListener("click", (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.root.getScreenCTM().inverse());
      const far = found.map((run) => Math.hypot(plot.x(run[place[0]]) - at.x, plot.y(run[place[1]]) - at.y));
      chosen.set(1 + far.indexOf(Math.min(...far)));
      draw();
    });
    pick(plane, ["a", "b"]);
    pick(errors, ["difference", "error"]);
    for (const plot of [plane, errors]) plot.root.classList.add("nalm-map");

    const whole = element("div", { class: "nalm", role: "group", "aria-label": "Runs of an experiment" },
      element("div", { class: "nalm-controls" }, model.row, range.row, when.row, chosen.row),
      element("div", { class: "nalm-plots" }, plane.root, errors.root), said, ask);
    whole.addEventListener("input", draw);
    draw();
    return whole;
  };

  window.nalm.seeds = { powers, runs, command, build };
  start("seeds");
})();
