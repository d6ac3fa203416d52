import type { Pool } from 'pg';
import {
  type ActivityAnchor,
  type ChainFault,
  type ChainRow,
  type CheckedRow,
  checkActivityLinksSql,
  findActivityLinkSql,
  type LinkRow,
  listActivityChainsSql,
  listUnchainedActivitySql,
  listUnlinkedActivitySql,
} from './chain.ts';

/** A position where the log differs from its chain; `place` and `lineId` null: none. */
export interface ActivityFault {
  organizationId: string;
  /** `YYYY-MM`, UTC. */
  month: string;
  place: number | null;
  lineId: string | null;
  /** With `anchor`: the last place where the first difference may be; `place` is the first. */
  toPlace: number | null;
  fault: ChainFault;
}

/** What `verifyActivity` checked, and the first faults of each chain. */
interface ActivityVerification {
  chains: number;
  lines: number;
  anchors: number;
  faults: ActivityFault[];
}

const linksPerCheck = 20_000;

/**
 * Verifies the hash chains of the activity log: finds rows that were changed, removed or inserted,
 * and links that were removed or replaced. Anchors compare it with a log outside the database: a
 * person who can write every table can also compute a new chain, but cannot change that log.
 *
 * Each statement reads a bounded part. Rows that commit meanwhile are not checked.
 *
 * @param options - `organizationId` null: all. `month`: `YYYY-MM`, null: all that the log keeps.
 */
export async function verifyActivity(
  pool: Pool,
  { organizationId, month }: { organizationId: string | null; month: string | null },
  anchors: readonly ActivityAnchor[] = [],
): Promise<ActivityVerification> {
  const { rows: chains } = await pool.query<ChainRow>(listActivityChainsSql, [organizationId, month]);
  const faults: ActivityFault[] = [];
  let lines = 0;
  for (const chain of chains) {
    const found = await verifyChain(pool, chain);
    lines += found.links;
    faults.push(...found.faults);
  }
  const unchained = await pool.query<{ organizationId: string; month: string }>(listUnchainedActivitySql, [
    organizationId,
  ]);
  for (const one of unchained.rows)
    if (month === null || one.month === month)
      faults.push({ ...one, place: null, lineId: null, toPlace: null, fault: 'end' });
  const asked = anchors.filter(
    (anchor) =>
      (organizationId === null || anchor.organizationId === organizationId) &&
      (month === null || anchor.month === month),
  );
  const byChain = Map.groupBy(asked, (anchor) => `${anchor.organizationId} ${anchor.month}`);
  for (const [key, ofChain] of byChain) {
    const chain = chains.find((one) => `${one.organizationId} ${one.month}` === key);
    const fault = await compareAnchors(pool, ofChain, chain);
    if (fault !== null) faults.push(fault);
  }
  return { chains: chains.length, lines, anchors: asked.length, faults };
}

async function verifyChain(pool: Pool, chain: ChainRow): Promise<{ links: number; faults: ActivityFault[] }> {
  const { organizationId, month, places, droppedPlaces } = chain;
  const of = { organizationId, month };
  const faults: ActivityFault[] = [];
  if (chain.isDroppedEarly) faults.push({ ...of, place: droppedPlaces, lineId: null, toPlace: null, fault: 'dropped' });
  let [place, hash, links] = [droppedPlaces, chain.firstHash, 0];
  while (place < places) {
    const values = [organizationId, month, place, hash, Math.min(linksPerCheck, places - place)];
    const { rows } = await pool.query<CheckedRow>(checkActivityLinksSql, values);
    const [checked] = rows;
    faults.push(...(checked?.faults ?? []).map((fault) => ({ ...of, ...fault, toPlace: null })));
    if (checked === undefined || checked.place === null || checked.hash === null) break;
    [place, hash, links] = [checked.place, checked.hash, links + checked.links];
  }
  if (place !== places || hash !== chain.hash) faults.push({ ...of, place, lineId: null, toPlace: null, fault: 'end' });
  const { rows } = await pool.query<{ lineId: string }>(listUnlinkedActivitySql, [organizationId, month]);
  for (const { lineId } of rows) faults.push({ ...of, place: null, lineId, toPlace: null, fault: 'inserted' });
  return { links, faults };
}

/**
 * Compares one chain with its anchors, in the order in which they were kept. Returns the places
 * between the last anchor that matches and the first that differs, with the first line there; null
 * when all match. A later anchor does not narrow them: it may be of the changed chain.
 */
async function compareAnchors(
  pool: Pool,
  anchors: readonly ActivityAnchor[],
  chain: ChainRow | undefined,
): Promise<ActivityFault | null> {
  const matching = [chain?.droppedPlaces ?? 0];
  for (const anchor of anchors) {
    const { organizationId, month, places } = anchor;
    if (await matchesAnchor(pool, anchor, chain)) {
      matching.push(places);
      continue;
    }
    const place = Math.max(0, ...matching.filter((one) => one < places)) + 1;
    const { rows } = await pool.query<LinkRow>(findActivityLinkSql, [organizationId, month, place]);
    return { organizationId, month, place, toPlace: places, lineId: rows[0]?.lineId ?? null, fault: 'anchor' };
  }
  return null;
}

/** Returns whether the chain has the anchor's hash at its position, or dropped its month. */
async function matchesAnchor(pool: Pool, anchor: ActivityAnchor, chain: ChainRow | undefined): Promise<boolean> {
  const { organizationId, month, places, hash } = anchor;
  if (chain === undefined || chain.places < places) return false;
  if (places === chain.droppedPlaces) return hash === chain.firstHash;
  if (places < chain.droppedPlaces) return true; // its link was dropped, and the last hash covers it
  const { rows } = await pool.query<LinkRow>(findActivityLinkSql, [organizationId, month, places]);
  return rows[0]?.hash === hash;
}
