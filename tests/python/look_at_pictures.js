// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

// Measures the pictures of a page in a browser, and writes into the page what is wrong with them.
const loaded = performance.getEntriesByType('resource').length;
const found = {boxes: 0, lines: 0, wrong: [], loaded};
const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 &&
  a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
const apart = (a, b) => a.right <= b.left || b.right <= a.left ||
  a.bottom <= b.top || b.bottom <= a.top;
const rect = (element) => element.getBoundingClientRect();
for (const svg of document.querySelectorAll('svg')) {
  const boxes = [...svg.querySelectorAll('.node .box, .kind rect')];
  for (const [index, box] of boxes.entries()) {
    found.boxes++;
    if (!inside(rect(box), rect(svg))) found.wrong.push('cut off: ' + box.parentNode.textContent);
    for (const other of boxes.slice(index + 1))
      if (!apart(rect(box), rect(other))) found.wrong.push('overlap: ' + box.parentNode.textContent);
    const lines = [...box.parentNode.querySelectorAll('text')];
    for (const [number, line] of lines.entries()) {
      found.lines++;
      if (!inside(rect(line), rect(box))) found.wrong.push('sticks out: ' + line.textContent);
      for (const other of lines.slice(number + 1))
        if (!apart(rect(line), {...rect(other).toJSON(), top: rect(other).top + 2}))
          found.wrong.push('lines overlap: ' + line.textContent);
    }
  }
}
const pre = document.createElement('pre');
pre.id = 'found';
pre.textContent = JSON.stringify(found);
document.body.append(pre);
