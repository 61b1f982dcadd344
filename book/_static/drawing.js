// What the widgets of a page share: elements, controls with labels, plots as SVG.
// A script defines window.nalm.NAME and calls nalm.start, which puts it in place of the figure of `data-widget="NAME"`.
window.nalm = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  const fill = (made, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  // A number as text: a true minus sign, as many digits as one reads, powers of ten where it is large or small.
  const number = (value, digits = 4) => {
    if (Number.isNaN(value)) return "not a number";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    const size = Math.abs(value);
    const written =
      size !== 0 && (size >= 1e5 || size < 1e-3)
        ? value.toExponential(Math.max(0, digits - 2)).replace("e+", "e")
        : String(Number(value.toPrecision(digits)));
    return written.replaceAll("-", "−");
  };

  // Controls. Each is a label around a native input, so that it has a name and takes the keyboard.
  let named = 0;
  const labelled = (text, input, ...after) => {
    input.id = `nalm-${(named += 1)}`;
    return element("div", { class: "nalm-control" }, element("label", { for: input.id }, text), input, ...after);
  };
  const slider = ({ label, min, max, step, value, show = (v) => number(v) }) => {
    const input = element("input", { type: "range", min, max, step });
    const shown = element("span", { class: "nalm-value", "aria-hidden": "true" });
    const say = () => {
      shown.textContent = show(input.valueAsNumber);
      input.setAttribute("aria-valuetext", show(input.valueAsNumber));
    };
    input.addEventListener("input", say);
    input.value = value;
    say();
    const set = (next) => {
      input.value = next;
      say();
    };
    return { row: labelled(label, input, shown), input, set, get value() { return input.valueAsNumber; } };
  };
  const choice = (label, options, value) => {
    const input = element("select", {}, ...options.map((option) => element("option", {}, option)));
    input.value = value ?? options[0];
    return { row: labelled(label, input), input, get value() { return input.value; } };
  };
  const check = (label, checked) => {
    const input = element("input", { type: "checkbox" });
    input.checked = checked;
    const row = labelled(label, input);
    row.classList.add("nalm-check");
    return { row, input, get value() { return input.checked; } };
  };
  const button = (label, press) => {
    const made = element("button", { type: "button" }, label);
    made.addEventListener("click", press);
    return made;
  };

  // Round numbers in [low, high], about `count` of them.
  const ticks = (low, high, count = 5) => {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n += 1) found.push(n * step + 0); // + 0: no −0
    return found;
  };

  // Limits that hold nearly all of the values, and zero, rounded outwards so that they change in steps.
  const limits = (values) => {
    const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
    const at = (share) => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
    const low = Math.min(0, at(0.03)), high = Math.max(0, at(0.97));
    if (high - low < 1e-9) return [-1, 1];
    const room = (high - low) * 0.08;
    const step = 10 ** Math.floor(Math.log10(high - low + 2 * room)) / 2;
    return [Math.floor((low - room) / step) * step, Math.ceil((high + room) / step) * step];
  };

  // Axes of fixed size in an SVG that scales; lines leave them clipped. x and y map numbers to its units.
  let plots = 0;
  class Plot {
    constructor({ label, xlabel, ylabel, width = 380, height = 270, left = 48, bottom = 40, right = 10, top = 34 }) {
      Object.assign(this, { width, height, left, bottom, right, top });
      this.clip = `nalm-clip-${(plots += 1)}`;
      this.root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "nalm-plot" });
      const inside = { x: left, y: top, width: width - left - right, height: height - top - bottom };
      this.inside = inside;
      this.under = svg("g");
      this.axes = svg("g");
      this.lines = svg("g", { "clip-path": `url(#${this.clip})` });
      this.over = svg("g");
      this.legends = svg("g");
      this.ylabel = svg("text", { x: 4, y: top - 10, class: "nalm-name" }, ylabel);
      this.root.append(
        svg("defs", {}, svg("clipPath", { id: this.clip }, svg("rect", inside))),
        this.under, this.axes, this.lines, this.over, this.legends, this.ylabel,
        svg("text", { x: left + inside.width / 2, y: height - 6, "text-anchor": "middle", class: "nalm-name" }, xlabel),
      );
    }
    x(value) { return this.left + ((value - this.xs[0]) / (this.xs[1] - this.xs[0])) * this.inside.width; }
    y(value) { return this.top + (1 - (value - this.ys[0]) / (this.ys[1] - this.ys[0])) * this.inside.height; }
    // New limits; draws axes and ticks anew and forgets the lines.
    frame(xs, ys, showX = (value) => number(value), showY = (value) => number(value)) {
      Object.assign(this, { xs, ys });
      this.axes.replaceChildren();
      for (const layer of [this.lines, this.over, this.legends]) layer.replaceChildren();
      const { left, top, inside } = this;
      const foot = top + inside.height;
      for (const tick of ticks(...xs)) {
        const x = this.x(tick);
        this.axes.append(
          svg("line", { x1: x, x2: x, y1: top, y2: foot, class: "nalm-grid" }),
          svg("text", { x, y: foot + 15, "text-anchor": "middle" }, showX(tick)),
        );
      }
      for (const tick of ticks(...ys)) {
        const y = this.y(tick);
        this.axes.append(
          svg("line", { x1: left, x2: left + inside.width, y1: y, y2: y, class: tick === 0 ? "nalm-zero" : "nalm-grid" }),
          svg("text", { x: left - 5, y: y + 4, "text-anchor": "end" }, showY(tick)),
        );
      }
    }
    // A line through [x, y] points; it breaks at what is no number and where it jumps through the whole frame.
    line(points, style) {
      const [low, high] = this.ys, far = high - low;
      const kept = ([, y]) => Math.max(low - far, Math.min(high + far, y));
      let path = "", before = NaN;
      for (const point of points) {
        if (Number.isNaN(point[1])) { before = NaN; continue; }
        const y = kept(point);
        const broken = Number.isNaN(before) || (Math.min(y, before) < low && Math.max(y, before) > high);
        path += `${broken ? "M" : "L"}${this.x(point[0]).toFixed(2)},${this.y(y).toFixed(2)}`;
        before = y;
      }
      const drawn = svg("path", { d: path, ...style });
      this.lines.append(drawn);
      return drawn;
    }
    // Entries above the axes, from the right.
    legend(entries) {
      let x = this.width - this.right;
      for (const { text, ...style } of [...entries].reverse()) {
        x -= text.length * 6.6;
        this.legends.append(svg("text", { x, y: this.top - 10 }, text));
        this.legends.append(svg("path", { d: `M${x - 26},${this.top - 14}h20`, ...style }));
        x -= 38;
      }
    }
  }

  // Put widgets in the place of their figures, which stay where a widget cannot be built.
  const start = (name) => {
    const begin = () => {
      for (const root of document.querySelectorAll(`[data-widget="${name}"]`)) {
        const built = window.nalm[name].build(JSON.parse(root.dataset.colours));
        root.replaceChildren(built);
      }
    };
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
    else begin();
  };

  return { element, svg, number, slider, choice, check, button, ticks, limits, Plot, start };
})();
