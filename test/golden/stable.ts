/**
 * Replaces values that differ between two runs by a name, in order of appearance: `<id 1>`,
 * `<time>`, `<key>`. Equal values get equal names, so a golden still shows which ids are the same.
 */
export function createStable() {
  const ids = new Map<string, string>();
  const nameId = (id: string): string => {
    const known = ids.get(id);
    if (known !== undefined) return known;
    const name = `<id ${ids.size + 1}>`;
    ids.set(id, name);
    return name;
  };
  const patterns: [RegExp, (found: string) => string][] = [
    [/aln_(us|ca)_[0-9A-Za-z]{40}/g, (key) => `<key of ${key.slice(4, 6)}>`],
    [/whsec_[0-9A-Za-z+/]{32}/g, () => '<signing secret>'],
    [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, (id) => nameId(id.toLowerCase())],
    [/usr_\d+_[0-9a-f]{8}/g, nameId],
    [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, () => '<time>'],
    [/127\.0\.0\.1:\d+/g, () => '127.0.0.1:<port>'],
    [/(?<=:\/\/\w+:)[\w-]+(?=@)/g, () => '<password>'],
    [/localhost:\d+/g, () => 'localhost:<port>'],
  ];
  return function stable(value: unknown): unknown {
    if (typeof value === 'string')
      return patterns.reduce((text, [pattern, name]) => text.replace(pattern, name), value);
    if (Array.isArray(value)) return value.map(stable);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [stable(name), stable(item)]));
  };
}

/** Returns the text of a golden file. */
export const goldenText = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;
