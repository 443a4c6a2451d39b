// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

// Measures a page and its pictures in a browser, and writes the found errors into the page.
const loaded = performance.getEntriesByType('resource').length;
const found = {boxes: 0, lines: 0, wrong: [], loaded, paper: ''};
const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 &&
  a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
const apart = (a, b) => a.right <= b.left || b.right <= a.left ||
  a.bottom <= b.top || b.bottom <= a.top;
const rect = (element) => element.getBoundingClientRect();
const painted = (element, property) => getComputedStyle(element)[property];

// The contrast of two colors, by the Web Content Accessibility Guidelines.
const brightness = (colour) => {
  const parts = colour.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const contrast = (one, other) => {
  const [dark, light] = [brightness(one), brightness(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
};
const readable = (what, ink, paper) => {
  const apart = contrast(ink, paper);
  if (apart < 4.5) found.wrong.push(`hard to read (${apart.toFixed(1)}): ${what}`);
};
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
      const below = number === 0 && box.parentNode.querySelector('.title') || box;
      readable(line.textContent, painted(line, 'fill'), painted(below, 'fill'));
      if (!inside(rect(line), rect(box))) found.wrong.push('sticks out: ' + line.textContent);
      for (const other of lines.slice(number + 1))
        if (!apart(rect(line), {...rect(other).toJSON(), top: rect(other).top + 2}))
          found.wrong.push('lines overlap: ' + line.textContent);
    }
  }
}
found.paper = painted(document.body, 'backgroundColor');
for (const element of document.querySelectorAll('.changelog :is(h1, p, b, th, td)'))
  readable(element.textContent.trim().slice(0, 60), painted(element, 'color'), found.paper);
for (const head of document.querySelectorAll('.changelog th')) {
  const range = document.createRange();
  range.selectNodeContents(head);
  const lines = new Set([...range.getClientRects()].map((line) => Math.round(line.top)));
  if (lines.size > 1) found.wrong.push('more than one line: ' + head.textContent);
}
if (document.documentElement.scrollWidth > window.innerWidth)
  found.wrong.push('the page is wider than its window');
const pre = document.createElement('pre');
pre.id = 'found';
pre.textContent = JSON.stringify(found);
document.body.append(pre);
