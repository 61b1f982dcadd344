// The saddle of the Real NPU on U[-2,2): its loss over two weights, and an optimiser's path from a start of one's choice.
(() => {
  const { element, svg, number, slider, choice, check, button, Plot, start } = window.nalm;
  const EPS = 2 ** -23;
  const STEPS = 3000, BATCH = 128;
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

  // Pairs (a, b) from U[-2,2), without 0: mulberry32, a generator of 32 bits that is the same in every language.
  const generator = (seed) => {
    let state = seed | 0;
    const next = () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 2 ** 30 - 2;
    };
    return (count) => Array.from({ length: count }, () => [next(), next()]);
  };

  // Mean squared error of RealNPU(2, 1) on examples with target a / b, and its gradient.
  // at: [W_a, W_b, g_a, g_b]; a gate outside [0, 1] counts as 0 or 1 and gets no gradient.
  const loss = (at, examples) => {
    const gates = [clamp(at[2], 0, 1), clamp(at[3], 0, 1)];
    const gradient = [0, 0, 0, 0];
    let total = 0;
    for (const pair of examples) {
      const logs = [0, 0], angles = [0, 0], slopes = [0, 0];
      for (let i = 0; i < 2; i += 1) {
        const size = Math.abs(pair[i]) + EPS, r = gates[i] * size + 1 - gates[i];
        logs[i] = Math.log(r);
        slopes[i] = (size - 1) / r;
        angles[i] = pair[i] < 0 ? Math.PI : 0;
      }
      const power = Math.exp(at[0] * logs[0] + at[1] * logs[1]);
      const angle = at[0] * gates[0] * angles[0] + at[1] * gates[1] * angles[1];
      const y = power * Math.cos(angle), turned = power * Math.sin(angle);
      const error = y - pair[0] / pair[1];
      total += error * error;
      for (let i = 0; i < 2; i += 1) {
        gradient[i] += 2 * error * (y * logs[i] - turned * gates[i] * angles[i]);
        if (gates[i] === at[2 + i]) gradient[2 + i] += 2 * error * at[i] * (y * slopes[i] - turned * angles[i]);
      }
    }
    return [total / examples.length, gradient.map((sum) => sum / examples.length)];
  };

  // The states [W_a, W_b, g_a, g_b] that training passes through: a new batch in each step. It ends where one overflows.
  const path = ({ from, steps = STEPS, seed, optimiser, rate, clip, hold }) => {
    const draw = generator(seed);
    let at = [...from, 0.5, 0.5], mean = [0, 0, 0, 0], square = [0, 0, 0, 0];
    const states = [at];
    for (let t = 1; t <= steps; t += 1) {
      let [, gradient] = loss(at, draw(BATCH));
      if (clip) {
        const factor = Math.min(1, 1 / (Math.hypot(...gradient) + 1e-6));
        gradient = gradient.map((g) => g * factor);
      }
      let change = gradient;
      if (optimiser === "Adam") {
        mean = mean.map((m, i) => 0.9 * m + 0.1 * gradient[i]);
        square = square.map((s, i) => 0.999 * s + 0.001 * gradient[i] ** 2);
        change = mean.map((m, i) => m / (1 - 0.9 ** t) / (Math.sqrt(square[i] / (1 - 0.999 ** t)) + 1e-8));
      }
      at = at.map((value, i) => value - rate * change[i]);
      if (hold) at = at.map((value, i) => clamp(value, i < 2 ? -1 : 0, 1));
      if (!at.every(Number.isFinite)) break;
      states.push(at);
    }
    return states;
  };

  // The loss of each pair of weights less that of always answering 0, `rows[W_b][W_a]`, for given gates.
  // Examples with the same signs share their cosine, so that only powers are multiplied.
  const surface = (line, gates, examples) => {
    const groups = [[], [], [], []];
    for (const pair of examples) groups[2 * (pair[0] < 0) + (pair[1] < 0)].push(pair);
    const open = gates.map((gate) => clamp(gate, 0, 1));
    const powers = (group, i) => {
      const logs = group.map((pair) => Math.log(open[i] * (Math.abs(pair[i]) + EPS) + 1 - open[i]));
      return line.map((weight) => logs.map((value) => Math.exp(weight * value)));
    };
    const rows = line.map(() => line.map(() => 0));
    groups.forEach((group, which) => {
      const a = powers(group, 0), b = powers(group, 1), targets = group.map((pair) => pair[0] / pair[1]);
      line.forEach((wb, row) => line.forEach((wa, column) => {
        const turn = Math.cos(Math.PI * (wa * open[0] * (which > 1) + wb * open[1] * (which % 2)));
        let found = 0;
        for (let n = 0; n < group.length; n += 1) {
          const y = a[column][n] * b[row][n] * turn;
          found += y * (y - 2 * targets[n]);
        }
        rows[row][column] += found / examples.length;
      }));
    });
    return rows;
  };

  // Colours: blue is better than answering 0, orange worse, in steps of a scale that is linear near 0.
  const END = 300, BANDS = 16;
  const level = (value) => clamp(Math.round((Math.asinh(value) / Math.asinh(END)) * BANDS), -BANDS, BANDS);
  const mix = (from, to, share) => from.map((c, i) => Math.round(c + (to[i] - c) * share));
  const colour = (band) => {
    const share = Math.abs(band) / BANDS, end = band < 0 ? [0, 62, 115] : [140, 50, 0];
    const middle = band < 0 ? [86, 170, 225] : [240, 145, 70];
    return share < 0.5 ? mix([250, 248, 242], middle, 2 * share) : mix(middle, end, 2 * share - 1);
  };

  const EXTENT = 1.1, POINTS = 45, PIXELS = 220;
  const LINE = Array.from({ length: POINTS }, (_, i) => EXTENT * ((2 * i) / (POINTS - 1) - 1));
  const picture = (rows) => {
    const canvas = element("canvas", { width: PIXELS, height: PIXELS }), context = canvas.getContext("2d");
    const image = context.createImageData(PIXELS, PIXELS);
    for (let v = 0; v < PIXELS; v += 1) for (let u = 0; u < PIXELS; u += 1) {
      const x = (u / (PIXELS - 1)) * (POINTS - 1), y = (1 - v / (PIXELS - 1)) * (POINTS - 1);
      const i = Math.min(POINTS - 2, Math.floor(x)), j = Math.min(POINTS - 2, Math.floor(y));
      const scaled = (a, b) => Math.asinh(rows[b][a]); // between grid points on the scale of the colours
      const low = scaled(i, j) + (scaled(i + 1, j) - scaled(i, j)) * (x - i);
      const high = scaled(i, j + 1) + (scaled(i + 1, j + 1) - scaled(i, j + 1)) * (x - i);
      image.data.set([...colour(level(Math.sinh(low + (high - low) * (y - j)))), 255], 4 * (v * PIXELS + u));
    }
    context.putImageData(image, 0, 0);
    return canvas.toDataURL();
  };

  const verdict = ([a, b, ga, gb]) => {
    if (Math.hypot(a - 1, b + 1) < 0.05 && Math.min(ga, gb) > 0.95) return "It divides a by b.";
    if (a < -0.3 && b > 0.3) return "It is on the side of b / a, with the right signs and the wrong sizes.";
    return a > 0.3 && b < -0.3 ? "It is on the side of a / b." : "It is on neither side.";
  };

  const build = () => {
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const examples = generator(0)(256);
    const map = new Plot({ label: "Loss over the two weights with the path of training; a click chooses a start",
      xlabel: "weight of a", ylabel: "weight of b", height: 366 });
    const course = new Plot({ label: "Weights and gates over the iterations", xlabel: "iteration", ylabel: "",
      height: 366, right: 22 });
    const said = element("output", { class: "nalm-said", "aria-live": "polite" });
    const from = ["a", "b"].map((name, i) => slider({ label: `Start: weight of ${name}`, min: -1, max: 1, step: 0.05, value: [-0.1, 0.3][i] }));
    const optimiser = choice("Optimiser", ["Adam", "SGD"]);
    const rate = choice("Learning rate", ["0.001", "0.005", "0.02", "0.1"], "0.005");
    const seed = slider({ label: "Batches of seed", min: 1, max: 25, step: 1, value: 1 });
    const clip = check("Clip the gradient to norm 1", false);
    const hold = check("Hold weights in [−1, 1] and gates in [0, 1]", true);
    const moment = slider({ label: "Iteration", min: 0, max: STEPS, step: 10, value: STEPS, show: (v) => v.toLocaleString("en") });
    const image = svg("image", { ...map.inside, preserveAspectRatio: "none" });
    let states = [], frame = 0, painted = "";

    // The map is that of the gates which the run has at the moment.
    const paint = (gates) => {
      const wanted = gates.map((gate) => clamp(gate, 0, 1).toFixed(2));
      if (wanted.join() === painted) return;
      painted = wanted.join();
      image.setAttribute("href", picture(surface(LINE, wanted.map(Number), examples)));
    };

    const draw = () => {
      const now = Math.min(moment.value, states.length - 1), at = states[now];
      paint(at.slice(2));
      map.frame([-EXTENT, EXTENT], [-EXTENT, EXTENT]);
      map.axes.querySelectorAll("line").forEach((line) => line.remove());
      map.line([[-EXTENT, -EXTENT], [EXTENT, EXTENT]], { class: "nalm-even" });
      for (const [text, a, b] of [["a / b", 1, -1], ["b / a", -1, 1]]) map.over.append(
        svg("circle", { cx: map.x(a), cy: map.y(b), r: 5, class: "nalm-goal" }),
        svg("text", { x: map.x(a) - 12 * a, y: map.y(b) + 4, "text-anchor": a > 0 ? "end" : "start", class: "nalm-goal-name" }, text),
      );
      const passed = states.slice(0, now + 1).filter((_, i) => i % 5 === 0 || i === now);
      const points = passed.map((state) => state.slice(0, 2));
      for (const kind of ["nalm-halo", "nalm-path"]) map.line(points, { class: kind });
      const mark = ([a, b], kind) => map.lines.append(svg("circle", { cx: map.x(a), cy: map.y(b), r: 5, class: kind }));
      mark(states[0], "nalm-begin");
      mark(at, "nalm-end");

      const few = states.map((state, i) => [i, ...state]).filter(([i]) => i % 10 === 0);
      const bounds = few.flatMap((state) => state.slice(1)).map((value) => clamp(value, -4, 4));
      course.frame([0, STEPS], [Math.min(-1.1, ...bounds), Math.max(1.1, ...bounds)], (v) => v.toLocaleString("en"));
      const kinds = ["weight-a", "weight-b", "gate-a", "gate-b"].map((name) => ({ class: `nalm-course nalm-${name}` }));
      kinds.forEach((kind, i) => course.line(few.map((state) => [state[0], state[i + 1]]), kind));
      const x = course.x(now);
      course.lines.append(svg("line", { x1: x, x2: x, y1: course.top, y2: course.height, class: "nalm-here" }));
      course.legend(["weight a", "weight b", "gate a", "gate b"].map((text, i) => ({ text, ...kinds[i] })));

      const shown = (pair) => pair.map((value) => number(value, 3)).join(", ");
      said.textContent = `Iteration ${now.toLocaleString("en")}: weights ${shown(at.slice(0, 2))}, gates ${shown(at.slice(2))}, ` +
        `loss ${number(loss(at, examples)[0], 3)}. ${now < moment.value ? "The next step overflows." : verdict(at)}`;
    };

    const run = (watch) => {
      cancelAnimationFrame(frame);
      states = path({ from: from.map((one) => one.value), seed: seed.value, optimiser: optimiser.value,
        rate: Number(rate.value), clip: clip.value, hold: hold.value });
      let passed = watch && !still ? 0 : STEPS;
      const step = () => {
        moment.set(passed);
        said.setAttribute("aria-live", passed < STEPS ? "off" : "polite"); // the end is read out, not the way
        draw();
        passed += STEPS / 100;
        if (passed <= STEPS) frame = requestAnimationFrame(step);
      };
      step();
    };

    map.root.prepend(image);
    map.root.classList.add("nalm-map");
    map.root.addEventListener("click", (event) => {
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.root.getScreenCTM().inverse());
      const { x, y, width, height } = map.inside;
      const [a, b] = [(place.x - x) / width, 1 - (place.y - y) / height];
      if (Math.min(a, b) < 0 || Math.max(a, b) > 1) return;
      from.forEach((one, i) => one.set(EXTENT * (2 * [a, b][i] - 1)));
      run(true);
    });

    // The colours, from the lowest band to the highest.
    const scale = element("div", { class: "nalm-scale" }, "lower loss ");
    for (let band = -BANDS; band <= BANDS; band += 1)
      scale.append(element("span", { style: `background: rgb(${colour(band)})` }));
    scale.append(" higher loss than always answering 0");

    const whole = element("div", { class: "nalm", role: "group", "aria-label": "Landscape" },
      element("div", { class: "nalm-plots" }, element("div", {}, map.root, scale), course.root), said,
      element("div", { class: "nalm-controls" }, ...from.map((one) => one.row), moment.row, seed.row, optimiser.row, rate.row),
      element("div", { class: "nalm-checks" }, clip.row, hold.row),
      element("div", { class: "nalm-buttons" }, button("Watch the path again", () => run(true))));
    whole.addEventListener("input", (event) => {
      cancelAnimationFrame(frame);
      said.setAttribute("aria-live", "polite");
      if (event.target === moment.input) draw();
      else run(false);
    });
    run(false);
    return whole;
  };

  window.nalm.landscape = { generator, loss, path, surface, build };
  start("landscape");
})();
