/** The size of the rooms: the apps, the workflows and the charts. */

/** The largest share of the product's lines that one room may have. */
const maxShare = 0.25;

/**
 * Returns the rooms with more than a quarter of the product's lines of TypeScript, one message each.
 *
 * @param lines - the lines of each file of the product, by its path.
 */
export function findLargeRooms(lines: ReadonlyMap<string, number>): string[] {
  const rooms = new Map<string, number>();
  let total = 0;
  for (const [file, count] of lines) {
    const room = /^(?:apps\/)?[^/]+/.exec(file)?.[0] ?? file;
    rooms.set(room, (rooms.get(room) ?? 0) + count);
    total += count;
  }
  return [...rooms].flatMap(([room, count]) =>
    count > maxShare * total
      ? [`${room}: ${Math.round((count / total) * 100)} % of the product's lines, at most ${maxShare * 100} %`]
      : [],
  );
}
