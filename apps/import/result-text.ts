import type { ImportResult } from './document/result.ts';

/**
 * Returns a result as text: a line for the file, for each kind in it, and for access that lies ahead, ends, events and
 * listed changes.
 */
export function resultText(result: ImportResult): string {
  const moved = result.shiftedDays === 0 ? '' : `, its dates moved by ${result.shiftedDays} days`;
  const done = result.isDryRun ? 'dry run, nothing was written: would be imported' : 'imported';
  const lines = [`${result.fileName}: ${done} into ${result.region}${moved}`];
  for (const [kind, counts] of Object.entries(result.counts)) {
    const parts = Object.entries(counts).flatMap(([change, rows]) => (rows === 0 ? [] : `${rows} ${change}`));
    if (parts.length > 0) lines.push(line(kind, parts.join(', ')));
  }
  if (result.ahead !== undefined) {
    const { grants, beginsOn } = result.ahead;
    lines.push(line('access ahead', `${grants} ${grants === 1 ? 'grant' : 'grants'}, the first begins on ${beginsOn}`));
  }
  if (result.ended !== undefined) {
    const kinds = Object.entries(result.ended).filter(([, rows]) => rows > 0);
    const total = kinds.reduce((sum, [, rows]) => sum + rows, 0);
    const parts = kinds.map(([kind, rows]) => `${kind} ${rows}`).join(', ');
    lines.push(line('left out, so ended', `${parts || 'nothing'} (--ending ${total})`));
  }
  for (const [type, { events, deliveries }] of Object.entries(result.events ?? {}))
    lines.push(line(`event ${type}`, `${events} (deliveries: ${deliveries})`));
  for (const change of result.list ?? []) lines.push(`  ${change}`);
  return `${lines.join('\n')}\n`;
}

const line = (name: string, text: string) => `  ${name.padEnd(22)}${text}`;
