/** Returns a number with its noun: `1 event`, `2,400 events`. */
export const countOf = (count: number, one: string, many: string): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
