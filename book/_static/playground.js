// Units by hand: sliders for a unit's parameters, its output over the first of two inputs, and a gradient.
// The equations are those of nalm.units, for two inputs and one output.
(() => {
  const { element, svg, number, slider, choice, button, limits, Plot, start } = window.nalm;

  // Numbers with a derivative, [value, derivative]: each equation is written once and gives both.
  const constant = (value) => [value, 0];
  const add = (...terms) => [terms.reduce((s, t) => s + t[0], 0), terms.reduce((s, t) => s + t[1], 0)];
  const times = (a, b) => [a[0] * b[0], a[1] * b[0] + a[0] * b[1]];
  const minus = (a, b) => [a[0] - b[0], a[1] - b[1]];
  const through = (value, slope, a) => [value, a[1] === 0 ? 0 : slope * a[1]];
  const exp = (a) => through(Math.exp(a[0]), Math.exp(a[0]), a);
  const log = (a) => through(Math.log(a[0]), 1 / a[0], a);
  const cos = (a) => through(Math.cos(a[0]), -Math.sin(a[0]), a);
  const tanh = (a) => through(Math.tanh(a[0]), 1 - Math.tanh(a[0]) ** 2, a);
  const abs = (a) => through(Math.abs(a[0]), Math.sign(a[0]), a);
  const sigmoid = (a) => {
    const value = 1 / (1 + Math.exp(-a[0]));
    return through(value, value * (1 - value), a);
  };
  // Within its bounds, and at them, a clamped number has its gradient, elsewhere none.
  const clamped = (a, low, high) =>
    a[0] >= low && a[0] <= high ? a : constant(Math.max(low, Math.min(high, a[0])));
  // base ** a for a base without derivative; 0 to a positive power is flat.
  const power = (base, a) => {
    const value = base ** a[0];
    return through(value, base === 0 && a[0] >= 0 ? 0 : value * Math.log(base), a);
  };
  const one = constant(1);
  const selected = (value, select) => add(times(select, value), minus(one, select));
  const product = (factors) => factors.reduce(times);
  const weightedSum = (values, weight) => add(...values.map((value, i) => times(value, weight[i])));
  const phase = (x) => constant(x < 0 ? Math.PI : 0);

  const nacMul = ({ weight_tanh, weight_sigmoid }, x, { eps }) => {
    const weight = weight_tanh.map((w, i) => times(tanh(w), sigmoid(weight_sigmoid[i])));
    return exp(weightedSum(x.map((one) => constant(Math.log(Math.abs(one) + eps))), weight));
  };
  const nau = ({ weight }, x) => weightedSum(x.map(constant), weight.map((w) => clamped(w, -1, 1)));
  const nmu = ({ weight }, x) => product(weight.map((w, i) => selected(constant(x[i]), clamped(w, 0, 1))));
  const npu = ({ weight, weight_im, gate }, x, { eps }) => {
    const open = gate.map((g) => clamped(g, 0, 1));
    const logs = open.map((g, i) => log(selected(constant(Math.abs(x[i]) + eps), g)));
    const angles = open.map((g, i) => times(g, phase(x[i])));
    let size = weightedSum(logs, weight), angle = weightedSum(angles, weight);
    if (weight_im) {
      size = minus(size, weightedSum(angles, weight_im));
      angle = add(angle, weightedSum(logs, weight_im));
    }
    return times(exp(size), cos(angle));
  };
  const SMALLEST = 2 ** -1022; // the smallest normal number of float64
  const nru = ({ weight }, x, { training }) =>
    product(
      weight.map((w, i) => {
        const size = Math.abs(x[i]);
        const steep = training && tanh(times(constant(1000), w));
        const select = training ? times(steep, steep) : abs(w);
        const raised = training ? exp(times(w, constant(Math.log(Math.max(size, SMALLEST))))) : power(size, w);
        return selected(times(constant(Math.sign(x[i])), raised), select);
      }),
    );
  const nmru = ({ weight }, x, { eps, training }) => {
    const c = [...x, ...x.map((one) => 1 / (training ? one + eps : one))];
    const size = product(weight.map((w, i) => selected(constant(Math.abs(c[i])), w)));
    return times(size, cos(weightedSum(c.map(phase), weight)));
  };

  // Parameters as nalm names them: [letter, lowest, highest, initial values]. `solves` are settings that compute
  // an operation; a parameter that one leaves out keeps the value of `always`.
  const free = ["W", -2, 2, [0.5, -0.5]], gate = ["g", -0.5, 1.5, [0.5, 0.5]];
  const twice = { "x₁ · x₂": { weight: [1, 1] }, "x₁ / x₂": { weight: [1, -1] } };
  const UNITS = {
    "NAC•": {
      equation: nacMul,
      parameters: { weight_tanh: ["Ŵ", -10, 10, [1, 1]], weight_sigmoid: ["M̂", -10, 10, [1, 1]] },
      eps: () => true,
      always: { weight_sigmoid: [10, 10] },
      solves: { "x₁ · x₂": { weight_tanh: [10, 10] }, "x₁ / x₂": { weight_tanh: [10, -10] } },
      note: "Signs are lost: it computes with |x|.",
    },
    NAU: {
      equation: nau,
      parameters: { weight: ["W", -1, 1, [0.5, 0.5]] },
      solves: { "x₁ + x₂": { weight: [1, 1] }, "x₁ − x₂": { weight: [1, -1] } },
    },
    NMU: {
      equation: nmu,
      parameters: { weight: ["W", 0, 1, [0.5, 0.5]] },
      solves: { "x₁ · x₂": { weight: [1, 1] } },
    },
    NPU: {
      equation: npu,
      parameters: { weight: free, weight_im: ["V", -2, 2, [0, 0]], gate },
      eps: () => true,
      always: { weight_im: [0, 0], gate: [1, 1] },
      solves: twice,
      note: "V is the imaginary part of the weight.",
    },
    "Real NPU": {
      equation: npu,
      parameters: { weight: free, gate },
      eps: () => true,
      always: { gate: [1, 1] },
      solves: twice,
      note: "A gate below 0 or above 1 counts as 0 or 1 and has no gradient.",
    },
    NRU: {
      equation: nru,
      modes: true,
      parameters: { weight: ["W", -1, 1, [0.5, -0.5]] },
      solves: twice,
      note: "In training a weight counts in full as soon as |W| passes about 0.003.",
    },
    NMRU: {
      equation: nmru,
      modes: true,
      parameters: { weight: ["W", 0, 1, [0.5, 0.5, 0.5, 0.5]] },
      eps: (training) => training,
      solves: { "x₁ · x₂": { weight: [1, 1, 0, 0] }, "x₁ / x₂": { weight: [1, 0, 0, 1] } },
      note: "W₃ and W₄ are the weights of 1 / x₁ and 1 / x₂.",
    },
  };
  const OPERATIONS = {
    "x₁ / x₂": (a, b) => a / b,
    "x₁ · x₂": (a, b) => a * b,
    "x₁ + x₂": (a, b) => a + b,
    "x₁ − x₂": (a, b) => a - b,
  };

  // The output of a unit and its derivative with respect to one of its parameters, [name, place].
  // state: name -> values; setting: {eps, training}.
  const evaluate = (unit, state, x, setting, [name, place] = []) => {
    const duals = Object.fromEntries(
      Object.entries(state).map(([key, values]) => [
        key,
        values.map((value, i) => [value, key === name && i === place ? 1 : 0]),
      ]),
    );
    return UNITS[unit].equation(duals, x, setting);
  };

  // Points of the curve, dense near 0 and never at 0, where some units have no value.
  const HALF = Array.from({ length: 160 }, (_, i) => 5 * ((i + 0.5) / 160) ** 2);
  const LINE = [...HALF.map((x) => -x).reverse(), ...HALF];

  const build = (colours) => {
    const plots = [
      new Plot({ label: "Output of the unit over the first input", xlabel: "x₁", ylabel: "output" }),
      new Plot({ label: "Gradient of the output over the first input", xlabel: "x₁", ylabel: "gradient" }),
    ];
    const said = element("output", { class: "nalm-said", "aria-live": "polite" });
    const unit = choice("Unit", Object.keys(UNITS), "Real NPU");
    const mode = choice("Mode", ["training", "evaluation"]);
    const goal = choice("Compare with", Object.keys(OPERATIONS));
    const wanted = choice("Gradient by", ["W₁"]);
    const second = slider({ label: "x₂", min: -5, max: 5, step: 0.1, value: 2 });
    const first = slider({ label: "x₁ (point)", min: -5, max: 5, step: 0.1, value: 1.5 });
    const eps = slider({ label: "ε", min: -8, max: 0, step: 0.5, value: -7, show: (v) => number(10 ** v, 2) });
    const solve = button("Set the solution", () => set(UNITS[unit.value].solves[goal.value]));
    const reset = button("Initial weights", () => set());
    const sliders = element("div", { class: "nalm-controls" });
    let parameters = {}; // name -> its sliders

    // Values of a solution, or the initial ones.
    const set = (solution) => {
      for (const [name, [, , , initial]] of Object.entries(UNITS[unit.value].parameters)) {
        const values = solution ? (solution[name] ?? UNITS[unit.value].always[name]) : initial;
        parameters[name].forEach((one, i) => one.set(values[i]));
      }
      draw();
    };

    const letter = (name, i) => UNITS[unit.value].parameters[name][0] + "₁₂₃₄"[i];
    const places = () =>
      Object.entries(parameters).flatMap(([name, group]) => group.map((_, i) => [name, i]));

    const change = () => {
      parameters = {};
      for (const [name, [, min, max, initial]] of Object.entries(UNITS[unit.value].parameters))
        parameters[name] = initial.map((value, i) =>
          slider({ label: letter(name, i), min, max, step: max - min > 4 ? 0.1 : 0.01, value }),
        );
      wanted.input.replaceChildren(...places().map(([name, i]) => element("option", {}, letter(name, i))));
      if (!UNITS[unit.value].solves[goal.value]) goal.input.value = Object.keys(UNITS[unit.value].solves)[0];
      sliders.replaceChildren(
        ...Object.values(parameters).flat().map((one) => one.row), eps.row, second.row, first.row,
      );
      draw();
    };

    const draw = () => {
      const kind = UNITS[unit.value], training = mode.value === "training";
      const state = Object.fromEntries(
        Object.entries(parameters).map(([name, group]) => [name, group.map((one) => one.value)]),
      );
      const setting = { eps: 10 ** eps.value, training };
      const by = places()[wanted.input.selectedIndex];
      const at = (x) => evaluate(unit.value, state, [x, second.value], setting, by);
      const exact = (x) => OPERATIONS[goal.value](x, second.value);
      mode.input.disabled = !kind.modes;
      eps.row.hidden = !kind.eps?.(training);
      solve.disabled = !kind.solves[goal.value];

      const found = LINE.map((x) => [x, ...at(x)]), here = at(first.value);
      const own = { class: "nalm-line", style: `--own: ${colours[unit.value]}` };
      const curves = [found.map(([x, y]) => [x, y]), found.map(([x, , slope]) => [x, slope])];
      const truth = LINE.map((x) => [x, exact(x)]);
      plots.forEach((plot, i) => {
        const shown = i ? curves[1] : [...curves[0], ...truth.filter(([, y]) => Math.abs(y) < 30)];
        plot.frame([-5, 5], limits(shown.map(([, y]) => y)));
        if (!i) plot.line(truth, { class: "nalm-exact" });
        plot.line(curves[i], own);
        const [x, y] = [plot.x(first.value), plot.y(here[i])];
        plot.lines.append(svg("line", { x1: x, x2: x, y1: plot.top, y2: plot.height, class: "nalm-here" }));
        if (Number.isFinite(y)) plot.lines.append(svg("circle", { cx: x, cy: y, r: 4.5, class: "nalm-point", style: own.style }));
      });
      plots[0].legend([
        { text: kind.modes ? `${unit.value}, ${mode.value}` : unit.value, ...own },
        { text: goal.value, class: "nalm-exact" },
      ]);
      plots[1].ylabel.textContent = `∂ output / ∂ ${wanted.value}`;
      const cannot = solve.disabled ? ` No weights of the ${unit.value} compute ${goal.value}.` : "";
      said.textContent =
        `At x₁ = ${number(first.value)}, x₂ = ${number(second.value)}: output ${number(here[0])}, ` +
        `${goal.value} = ${number(exact(first.value))}; gradient by ${wanted.value} ${number(here[1])}.` +
        cannot + (kind.note ? ` ${kind.note}` : "");
    };

    const top = element("div", { class: "nalm-controls" }, unit.row, mode.row, goal.row, wanted.row);
    const whole = element(
      "div",
      { class: "nalm", role: "group", "aria-label": "Units by hand" },
      top,
      element("div", { class: "nalm-plots" }, ...plots.map((plot) => plot.root)),
      said,
      sliders,
      element("div", { class: "nalm-buttons" }, solve, reset),
    );
    whole.addEventListener("input", (event) => (event.target === unit.input ? change() : draw()));
    change();
    return whole;
  };

  window.nalm.playground = { UNITS, evaluate, build };
  start("playground");
})();
