import { z } from 'zod';
import type { AuditAnchor } from '#domain/audit-log/chain.ts';
import { CommandError } from './errors.ts';
import { readText } from './read-text.ts';

const Anchor = z.object({
  organizationId: z.uuid(),
  month: z.string().regex(/^\d{4}-\d\d$/),
  length: z.coerce.number().int().positive(),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
});

/** A line of the worker's log. */
const LogLine = z.object({ auditAnchor: Anchor });

/** A line of a collector's file: one OTLP request of log records. A 64-bit integer may be text. */
const OtlpLine = z.object({
  resourceLogs: z.array(
    z.object({
      scopeLogs: z.array(
        z.object({
          logRecords: z.array(
            z.object({
              attributes: z.array(z.object({ key: z.string(), value: z.record(z.string(), z.unknown()) })).default([]),
            }),
          ),
        }),
      ),
    }),
  ),
});

/**
 * Reads anchors from JSON lines, as the worker's log or an OTLP collector writes them. Skips other
 * lines.
 *
 * @throws CommandError when the file cannot be read, has no anchor, or a line of anchors is broken.
 */
export async function readAnchors(file: string): Promise<AuditAnchor[]> {
  const text = await readText(file);
  const anchors = text.split('\n').flatMap((line, index) => {
    if (!/"auditAnchor"|"org_api\.audit_log\.anchor\./.test(line)) return [];
    const found = readLine(parseJson(line));
    if (found === null)
      throw new CommandError(`Line ${index + 1} of ${file} is not an anchor. Enter complete JSON lines.`);
    return found;
  });
  if (anchors.length === 0)
    throw new CommandError(`${file} contains no anchors. Enter JSON lines of the worker’s log or of a collector.`);
  return anchors;
}

/** Returns the anchors of a line; null when one is broken. */
function readLine(line: unknown): AuditAnchor[] | null {
  const logged = LogLine.safeParse(line);
  if (logged.success) return [logged.data.auditAnchor];
  const otlp = OtlpLine.safeParse(line);
  if (!otlp.success) return null;
  const records = otlp.data.resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords));
  const anchors = records
    .map(({ attributes }) => Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]])))
    .filter((attributes) => 'org_api.audit_log.anchor.hash' in attributes)
    .map((attributes) => ({
      organizationId: attributes['organization.id'],
      month: attributes['org_api.audit_log.anchor.month'],
      length: attributes['org_api.audit_log.anchor.length'],
      hash: attributes['org_api.audit_log.anchor.hash'],
    }));
  const read = z.array(Anchor).safeParse(anchors);
  return read.success ? read.data : null;
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line.slice(line.indexOf('{')));
  } catch {
    return null;
  }
}
