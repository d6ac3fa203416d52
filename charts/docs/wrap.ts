/** Breaks a text at its spaces into lines of at most `columns`. Longer words stay whole. */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && longer.length <= columns) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
