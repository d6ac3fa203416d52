import { familyDayFields, platformFunctions, platformViews } from '#domain/contract/platform.ts';
import { platformErrors } from '#domain/contract/platform-errors.ts';

/** Quotes names of functions as code, in text that comments of the database have too. */
const list = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');

/** The tables of `docs/platform.md` by name, from the sentences of the contract. */
const tables: Readonly<Record<string, () => string>> = {
  functions: () => {
    const rows = Object.entries(platformFunctions).map(([name, { does, required, optional = {}, codes }]) => {
      const needed = list(Object.keys(required));
      const others = Object.keys(optional).length === 0 ? '' : `; with a default ${list(Object.keys(optional))}`;
      const own = codes.filter((code) => !everywhere.includes(code));
      return `| \`${name}\` | ${does} | ${needed}${others} | ${list(own)} |`;
    });
    return ['| Function | Does | Arguments | Codes |', '| --- | --- | --- | --- |', ...rows].join('\n');
  },
  days: () => {
    const rows = Object.entries(familyDayFields).map(([field, text]) => `| \`${field}\` | ${text} |`);
    return ['| Field | Holds |', '| --- | --- |', ...rows].join('\n');
  },
  views: () => {
    const rows = Object.entries(platformViews).flatMap(([view, { is, columns }]) => [
      `| \`${view}\` | | ${is} |`,
      ...Object.entries(columns)
        .filter(([column]) => column !== 'organization' || view === 'organization')
        .map(([column, text]) => `| | \`${column}\` | ${text} |`),
    ]);
    return ['| View | Column | Shows |', '| --- | --- | --- |', ...rows].join('\n');
  },
  errors: () => {
    const rows = Object.entries(platformErrors).map(
      ([code, { state, means, todo }]) => `| \`${code}\` | ${state} | ${means} | ${todo} |`,
    );
    return ['| Code | SQLSTATE | Means | Do |', '| --- | --- | --- | --- |', ...rows].join('\n');
  },
};

/** Codes that the page names once, and not for each function. */
const everywhere: readonly string[] = [
  'wrong_isolation',
  'argument_missing',
  'argument_invalid',
  'no_such_organization',
];

const place = /^<!-- table: (?<name>\w+) -->\n[\s\S]*?^<!-- end -->$/gm;

/** Returns `docs/platform.md` with its tables replaced; `page` is its text now. */
export function platformPage(page: string): string {
  return page.replace(place, (_, name: string) => {
    const table = tables[name];
    if (table === undefined) throw new Error(`docs/platform.md: no table ${name}`);
    return `<!-- table: ${name} -->\n${table()}\n<!-- end -->`;
  });
}
