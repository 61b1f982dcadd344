// A figure, which is a link to its picture, opens at its full size, in which it can be scrolled: on a phone its
// labels are too small to read.
(() => {
  const links = document.querySelectorAll(".bd-article a.image-reference");
  if (!links.length) return;
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", "Figure at full size");
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  const frame = document.createElement("div");
  frame.tabIndex = 0; // so that arrow keys scroll it
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", "Figure");
  dialog.append(close, frame);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target === close) dialog.close();
  });
  document.body.append(dialog);
  links.forEach((link) => {
    link.title = "Show at full size";
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const whole = link.querySelector("img").cloneNode();
      whole.removeAttribute("style"); // its width on the page
      frame.replaceChildren(whole);
      dialog.showModal();
    });
  });
})();
