// Filters of the scoreboard.
(() => {
  const board = document.getElementById("nalm-board");
  if (!board) return;
  const form = board.querySelector("form");
  const rows = [...board.querySelectorAll("tbody tr")];
  const fits = (row, words) =>
    (!form.paper.value || row.dataset.paper === form.paper.value) &&
    (!form.verdict.value || row.dataset.verdict === form.verdict.value) &&
    words.every((word) => row.textContent.toLowerCase().includes(word));
  form.addEventListener("input", () => {
    const words = form.words.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !fits(row, words);
    const count = rows.filter((row) => !row.hidden).length;
    form.querySelector("output").textContent = count + (count === 1 ? " item" : " items");
  });
  form.addEventListener("submit", (event) => event.preventDefault());
})();
