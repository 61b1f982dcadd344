// Parts of pages that are written by others have no name or a wrong role, by which a screen reader tells them: the
// theme's sidebar, the corner of a Markdown table, and the bibliography, whose list holds what no list may.
(() => {
  document.querySelectorAll(".bd-sidebar summary").forEach((summary) => {
    const page = summary.closest("li")?.querySelector("a");
    summary.setAttribute("aria-label", `Pages under ${page ? page.textContent.trim() : "this one"}`);
  });
  document.querySelectorAll(".sidebar-primary-items__start").forEach((part) => {
    part.setAttribute("role", "region");
    part.setAttribute("aria-label", "Book");
  });
  document.querySelectorAll("th.head").forEach((head) => {
    if (!head.textContent.trim()) head.replaceWith(document.createElement("td"));
  });
  document.querySelectorAll(".citation-list, .citation").forEach((part) => part.removeAttribute("role"));
})();
