// Column names of sortable tables become buttons; without script the tables stay as they are.
(function () {
  function key(row, column) {
    var text = row.cells[column].textContent.trim();
    var number = parseFloat(text.replace(/,/g, ""));
    return /^[-+]?[\d.,]+(e[-+]?\d+)?$/i.test(text) && !isNaN(number) ? number : text;
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b, undefined, { numeric: true });
  }
  function prepare(table) {
    if (table.dataset.ready) return;
    table.dataset.ready = "yes";
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = cell.textContent;
      cell.textContent = "";
      cell.appendChild(button);
      button.addEventListener("click", function () {
        // Numbers start with the largest, names with the first; a second click turns it round.
        var rows = Array.prototype.slice.call(table.tBodies[0].rows);
        var keys = new Map(rows.map(function (row) { return [row, key(row, column)]; }));
        var numeric = typeof keys.get(rows[0]) === "number";
        var now = cell.getAttribute("aria-sort");
        var down = now ? now === "ascending" : numeric;
        Array.prototype.forEach.call(table.tHead.rows[0].cells, function (other) {
          other.removeAttribute("aria-sort");
        });
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        rows.sort(function (a, b) { return (down ? -1 : 1) * compare(keys.get(a), keys.get(b)); });
        rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
      });
    });
  }
  Array.prototype.forEach.call(document.querySelectorAll(".lt-report table.sortable"), prepare);
})();
