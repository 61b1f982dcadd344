// Filters of the scoreboard.
(() => {
  const board = document.getElementById("nalm-board");
  if (!board) return;
  const form = board.querySelector("form");
  const groups = [...board.querySelectorAll("section")];
  const lines = [...board.querySelectorAll("li")];
  const fits = (line, words) =>
    ["paper", "kind", "verdict"].every((name) => !form[name].value || line.dataset[name] === form[name].value) &&
    words.every((word) => line.textContent.toLowerCase().includes(word));
  form.hidden = false;
  form.addEventListener("input", () => {
    const words = form.words.value.toLowerCase().split(/\s+/);
    for (const line of lines) line.hidden = !fits(line, words);
    for (const group of groups) group.hidden = !group.querySelector("li:not([hidden])");
    const count = lines.filter((line) => !line.hidden).length;
    form.querySelector("output").textContent = count + (count === 1 ? " item" : " items");
  });
  form.addEventListener("submit", (event) => event.preventDefault());
})();
