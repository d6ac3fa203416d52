import { createHash, type Hash } from 'node:crypto';
import {
  type EvidenceChain,
  type EvidenceDelivery,
  eachEvidenceDelivery,
  eachEvidenceEntry,
  eachEvidenceNames,
} from '#domain/audit-log/evidence.ts';
import type { Queryable } from '#domain/db/database.ts';
import { byteOrderMark, csvLine } from '../../web/csv.ts';
import type { ZipPiece } from '../../web/zip.ts';

/** What a package is about. Months are `YYYY-MM`, UTC, and both are included. */
export interface EvidencePeriod {
  organizationId: string;
  from: string;
  to: string;
  createdAt: Date;
}

/**
 * Yields the files of an evidence package: `programs`, the log and the names of each month, the
 * deliveries of these months, and last the manifest with the SHA-256 of the others.
 *
 * @param onManifest - called with the SHA-256 of the manifest before that is yielded, so that no
 * package is complete without its entry in the log.
 */
export async function* evidencePieces(
  db: Queryable,
  period: EvidencePeriod,
  chains: readonly EvidenceChain[],
  programs: readonly ZipPiece[],
  onManifest: (sha256: string) => Promise<void>,
): AsyncGenerator<ZipPiece> {
  const digests = new Map<string, Hash>();
  for await (const piece of contents(db, period, chains, programs)) {
    const digest = digests.get(piece.file) ?? createHash('sha256');
    digests.set(piece.file, digest.update(piece.text));
    yield piece;
  }
  const manifest = `${JSON.stringify(
    {
      organizationId: period.organizationId,
      createdAt: period.createdAt.toISOString(),
      months: chains.map(({ anchor, ...chain }) => ({ ...chain, log: logFile(chain), names: namesFile(chain) })),
      anchors: chains.flatMap(({ month, anchor }) => (anchor === null ? [] : [{ month, ...anchor }])),
      files: [...digests].map(([file, digest]) => ({ file, sha256: digest.digest('hex') })),
    },
    null,
    2,
  )}\n`;
  await onManifest(createHash('sha256').update(manifest).digest('hex'));
  yield { file: 'manifest.json', text: manifest };
}

const logFile = ({ month }: { month: string }) => `log-${month}.txt`;
const namesFile = ({ month }: { month: string }) => `names-${month}.txt`;

async function* contents(
  db: Queryable,
  { organizationId, from, to }: EvidencePeriod,
  chains: readonly EvidenceChain[],
  programs: readonly ZipPiece[],
): AsyncGenerator<ZipPiece> {
  yield* programs;
  for (const chain of chains) {
    yield* log(db, organizationId, chain);
    yield* names(db, organizationId, chain);
  }
  const months = { from: new Date(`${from}-01T00:00:00Z`), until: firstDayAfter(to) };
  yield { file: deliveriesFile, text: byteOrderMark + csvLine(Object.values(deliveryColumns)) };
  for await (const deliveries of eachEvidenceDelivery(db, organizationId, months))
    yield { file: deliveriesFile, text: deliveries.map(deliveryLine).join('') };
}

async function* log(db: Queryable, organizationId: string, chain: EvidenceChain): AsyncGenerator<ZipPiece> {
  const file = logFile(chain);
  for await (const entries of eachEvidenceEntry(db, organizationId, chain))
    yield { file, text: entries.map(({ position, hash, text }) => `${position}\t${hash}\t${text}\n`).join('') };
}

async function* names(db: Queryable, organizationId: string, chain: EvidenceChain): AsyncGenerator<ZipPiece> {
  const file = namesFile(chain);
  // A month without names has an empty file.
  yield { file, text: '' };
  for await (const names of eachEvidenceNames(db, organizationId, chain))
    yield { file, text: names.map(({ position, salt, text }) => `${position}\t${salt}\t${text}\n`).join('') };
}

const deliveriesFile = 'deliveries.csv';

const deliveryColumns = {
  eventId: 'event_id',
  eventType: 'event_type',
  createdAt: 'event_created_at_utc',
  webhookId: 'webhook_id',
  host: 'webhook_host',
  state: 'state',
  attempts: 'attempts',
  lostAttempts: 'attempts_without_known_response',
  acknowledgedAt: 'acknowledged_at_utc',
  httpStatus: 'http_status',
} satisfies Record<keyof EvidenceDelivery, string>;

const deliveryFields = Object.keys(deliveryColumns) as (keyof EvidenceDelivery)[];

const deliveryLine = (delivery: EvidenceDelivery): string => csvLine(deliveryFields.map((field) => delivery[field]));

function firstDayAfter(month: string): Date {
  const [year = 0, number = 0] = month.split('-').map(Number);
  return new Date(Date.UTC(year, number, 1));
}
