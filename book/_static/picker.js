// Which unit: the questions, and of the chosen cell the units that were measured, the best first. The cells are in
// picker-data.js, which is written when the book is built; `cells` says how a line of them is to be read.
(() => {
  const { element, choice, start } = window.nalm;
  const [SOLVED, RUNS, RATE, LOW, HIGH, AT, SEEDS, NETWORK, RECIPE, FAILURE, SOURCE] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

  // The lines of the units for the answers, which are places in the lists of the data; none if nobody measured it.
  const cell = (data, answers) => (data.cells[answers.join(" ")] ?? []).map((line) => ({
    unit: line[0], good: line[1], solved: line[SOLVED], runs: line[RUNS], rate: line[RATE], low: line[LOW], high: line[HIGH],
    at: line[AT], seeds: line[SEEDS], network: data.texts[line[NETWORK]], recipe: data.texts[line[RECIPE]],
    failure: data.texts[line[FAILURE]], source: data.texts[line[SOURCE]],
  }));
  // The places of the sizes that were measured with the other answers.
  const measured = (data, operation, signs, others) => data.sizes.map((_, place) => place)
    .filter((place) => `${operation} ${signs} ${place} ${others}` in data.cells);

  const percent = (share) => `${Math.round(100 * share)}%`;
  const row = (tag, texts) => element("tr", {}, ...texts.map((text) =>
    element(tag, tag === "th" ? { scope: "col" } : {}, text)));

  const build = () => {
    const data = window.nalm.pickerData;
    const operation = choice("Operation", data.operations, "a / b");
    const signs = choice("Signs", data.signs, data.signs[2]);
    const others = choice("Other inputs", data.others);
    const size = choice("Size of the numbers", data.sizes, "−2 to 2");
    const said = element("output", { class: "nalm-said", "aria-live": "polite" });
    const table = element("table", { class: "nalm-units" });
    const more = element("dl", { class: "nalm-recipe" });

    const draw = () => {
      const asked = [operation, signs, others].map(({ input }) => input.selectedIndex);
      const there = measured(data, ...asked);
      [...size.input.options].forEach((option, place) => {
        option.textContent = data.sizes[place] + (there.includes(place) ? "" : " (not measured)");
      });
      const units = cell(data, [asked[0], asked[1], size.input.selectedIndex, asked[2]]);
      table.replaceChildren();
      more.replaceChildren();
      if (units.length === 0) {
        const near = there.map((place) => data.sizes[place]).join("; ");
        said.textContent = "Not measured." + (near ? ` With these signs and inputs there are: ${near}.` : "");
        return;
      }
      const good = units.filter((one) => one.good), best = units[0];
      const named = (which) => good.filter(which).map((one) => one.unit).join(", ");
      const equal = (one) => one.solved === best.solved && one.runs === best.runs;
      const rest = named((one) => !equal(one));
      said.textContent = good.length === 0 ? `None of ${units.length} units solved a run.`
        : `${named(equal)}: ${best.solved} of ${best.runs} runs` +
          `${rest ? `; not significantly worse: ${rest}` : ""}. ` +
          (best.seeds ? `Train ${best.seeds} seeds, so that one of them is solved with 95% probability.` : "");
      table.append(element("thead", {}, row("th", ["unit", "solved", "rate, 95% interval", "solved at iteration, median"])),
        element("tbody", {}, ...units.map((one) => row("td", [one.unit, `${one.solved} of ${one.runs}`,
          `${percent(one.rate)} (${percent(one.low)} to ${percent(one.high)})`,
          one.at === null ? "–" : one.at.toLocaleString("en")]))));
      for (const [name, text] of [["Network", element("code", {}, best.network)], ["Training", best.recipe],
        ["Failed runs", best.failure || "none"], ["Rows", best.source]]) {
        more.append(element("dt", {}, `${name} of the ${best.unit}`), element("dd", {}, text));
      }
    };

    const whole = element("div", { class: "nalm", role: "group", "aria-label": "Which unit" },
      element("div", { class: "nalm-controls" }, operation.row, signs.row, size.row, others.row), said,
      element("div", { class: "nalm-scroll", tabindex: "0", role: "region", "aria-label": "Units" }, table), more);
    whole.addEventListener("input", draw);
    draw();
    return whole;
  };

  window.nalm.picker = { cell, measured, build };
  start("picker");
})();
