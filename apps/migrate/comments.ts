import { escapeIdentifier, escapeLiteral } from 'pg';
import { type PlatformFunction, platformFunctions, platformViews } from '#domain/contract/platform.ts';

/**
 * Returns SQL that describes schema `platform` in the catalog, where psql and other clients show it:
 * its views, their columns, and its functions with arguments and codes.
 */
export function commentSql(): string {
  const views = Object.entries(platformViews).flatMap(([view, { is, columns }]) => {
    const name = `platform.${escapeIdentifier(view)}`;
    const ofColumns = Object.entries(columns).map(
      ([column, text]) => `comment on column ${name}.${escapeIdentifier(column)} is ${escapeLiteral(text)}`,
    );
    return [`comment on view ${name} is ${escapeLiteral(is)}`, ...ofColumns];
  });
  const functions = Object.entries(platformFunctions).map(
    ([name, description]) =>
      `comment on function platform.${escapeIdentifier(name)} is ${escapeLiteral(functionComment(description))}`,
  );
  return [...views, ...functions].join(';\n');
}

/** Returns the comment of a function: what it does, a line for each argument, and its codes. */
export function functionComment({ does, required, optional, codes }: PlatformFunction): string {
  const list = Object.entries({ ...required, ...optional }).map(([argument, text]) => `${argument}: ${text}`);
  return [does, ...list, `Rejects with ${codes.join(', ')}.`].join('\n');
}
