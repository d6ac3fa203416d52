import { CompiledQuery } from 'kysely';
import type { Queryable } from '../db/database.ts';
import {
  type AuditAnchor,
  type ChainFault,
  type ChainRow,
  type CheckedRow,
  checkAuditLinksSql,
  findAuditLinkSql,
  type LinkRow,
  listAuditChainsSql,
  listUnchainedMonthsSql,
  listUnlinkedEntriesSql,
} from './chain.ts';

/** A position where the log differs from its chain; `position` and `entryId` null: none. */
export interface AuditLogFault {
  organizationId: string;
  /** `YYYY-MM`, UTC. */
  month: string;
  position: number | null;
  entryId: string | null;
  /** With `anchor`: the last position where the first difference may be; `position` is the first. */
  toPosition: number | null;
  fault: ChainFault;
}

/** What `verifyAuditLog` checked, and the first faults of each chain. */
interface AuditLogVerification {
  chains: number;
  entries: number;
  anchors: number;
  faults: AuditLogFault[];
}

const linksPerCheck = 20_000;

/**
 * Verifies the hash chains of the audit log: finds entries that were changed, removed or inserted,
 * and links that were removed or replaced. Anchors compare it with a log outside the database: a
 * person who can write every table can also compute a new chain, but cannot change that log.
 *
 * Each statement reads a bounded part. Entries that commit meanwhile are not checked.
 *
 * @param options - `organizationId` null: all. `month`: `YYYY-MM`, null: all that the log keeps.
 */
export async function verifyAuditLog(
  db: Queryable,
  { organizationId, month }: { organizationId: string | null; month: string | null },
  anchors: readonly AuditAnchor[] = [],
): Promise<AuditLogVerification> {
  const chains = await db.query<ChainRow>(CompiledQuery.raw(listAuditChainsSql, [organizationId, month]));
  const faults: AuditLogFault[] = [];
  let entries = 0;
  for (const chain of chains) {
    const found = await verifyChain(db, chain);
    entries += found.links;
    faults.push(...found.faults);
  }
  const unchained = await db.query<{ organizationId: string; month: string }>(
    CompiledQuery.raw(listUnchainedMonthsSql, [organizationId]),
  );
  for (const one of unchained)
    if (month === null || one.month === month)
      faults.push({ ...one, position: null, entryId: null, toPosition: null, fault: 'end' });
  const relevant = anchors.filter(
    (anchor) =>
      (organizationId === null || anchor.organizationId === organizationId) &&
      (month === null || anchor.month === month),
  );
  const byChain = Map.groupBy(relevant, (anchor) => `${anchor.organizationId} ${anchor.month}`);
  for (const [key, ofChain] of byChain) {
    const chain = chains.find((one) => `${one.organizationId} ${one.month}` === key);
    const fault = await compareAnchors(db, ofChain, chain);
    if (fault !== null) faults.push(fault);
  }
  return { chains: chains.length, entries, anchors: relevant.length, faults };
}

async function verifyChain(db: Queryable, chain: ChainRow): Promise<{ links: number; faults: AuditLogFault[] }> {
  const { organizationId, month, length, droppedLength } = chain;
  const of = { organizationId, month };
  const faults: AuditLogFault[] = [];
  if (chain.isDroppedEarly)
    faults.push({ ...of, position: droppedLength, entryId: null, toPosition: null, fault: 'dropped' });
  let [position, hash, links] = [droppedLength, chain.firstHash, 0];
  while (position < length) {
    const values = [organizationId, month, position, hash, Math.min(linksPerCheck, length - position)];
    const [checked] = await db.query<CheckedRow>(CompiledQuery.raw(checkAuditLinksSql, values));
    faults.push(...(checked?.faults ?? []).map((fault) => ({ ...of, ...fault, toPosition: null })));
    if (checked === undefined || checked.position === null || checked.hash === null) break;
    [position, hash, links] = [checked.position, checked.hash, links + checked.links];
  }
  if (position !== length || hash !== chain.hash)
    faults.push({ ...of, position, entryId: null, toPosition: null, fault: 'end' });
  const unlinked = await db.query<{ entryId: string }>(
    CompiledQuery.raw(listUnlinkedEntriesSql, [organizationId, month]),
  );
  for (const { entryId } of unlinked)
    faults.push({ ...of, position: null, entryId, toPosition: null, fault: 'inserted' });
  return { links, faults };
}

/**
 * Compares one chain with its anchors, in the order in which they were kept. Returns the positions
 * between the last anchor that matches and the first that differs, with the first entry there; null
 * when all match. A later anchor does not narrow them: it may be of the changed chain.
 */
async function compareAnchors(
  db: Queryable,
  anchors: readonly AuditAnchor[],
  chain: ChainRow | undefined,
): Promise<AuditLogFault | null> {
  const matching = [chain?.droppedLength ?? 0];
  for (const anchor of anchors) {
    const { organizationId, month, length } = anchor;
    if (await matchesAnchor(db, anchor, chain)) {
      matching.push(length);
      continue;
    }
    const position = Math.max(0, ...matching.filter((one) => one < length)) + 1;
    const link = await findLink(db, organizationId, month, position);
    return { organizationId, month, position, toPosition: length, entryId: link?.entryId ?? null, fault: 'anchor' };
  }
  return null;
}

/** Returns whether the chain has the anchor's hash at its position, or dropped its month. */
async function matchesAnchor(db: Queryable, anchor: AuditAnchor, chain: ChainRow | undefined): Promise<boolean> {
  const { organizationId, month, length, hash } = anchor;
  if (chain === undefined || chain.length < length) return false;
  if (length === chain.droppedLength) return hash === chain.firstHash;
  if (length < chain.droppedLength) return true; // its link was dropped, and the last hash covers it
  const link = await findLink(db, organizationId, month, length);
  return link?.hash === hash;
}

async function findLink(db: Queryable, ...chainAndPosition: [string, string, number]): Promise<LinkRow | undefined> {
  const [link] = await db.query<LinkRow>(CompiledQuery.raw(findAuditLinkSql, chainAndPosition));
  return link;
}
