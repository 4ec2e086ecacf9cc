// A search for --label-map means the option: "-" before a word would exclude it.
for (const event of ["input", "keyup"]) {
  document.addEventListener(event, ({ target }) => {
    if (!target.matches("input.md-search__input")) return;
    const words = target.value.replace(/(^|\s)-+/g, "$1");
    if (words !== target.value) target.value = words;
  }, true); // before the search reads it
}
