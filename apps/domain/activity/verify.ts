import type { Pool } from 'pg';
import {
  type ActivityAnchor,
  type ChainFault,
  type ChainRow,
  type CheckedRow,
  checkActivityLinksSql,
  findActivityLinkSql,
  listActivityChainsSql,
  listUnchainedActivitySql,
  listUnlinkedActivitySql,
} from '../db/statements/activity-chain.ts';

/** A position where the log differs from its chain; `place` and `lineId` null: none. */
interface ActivityFault {
  organizationId: string;
  /** `YYYY-MM`, UTC. */
  month: string;
  place: number | null;
  lineId: string | null;
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
    if (month === null || one.month === month) faults.push({ ...one, place: null, lineId: null, fault: 'end' });
  const asked = anchors.filter(
    (anchor) =>
      (organizationId === null || anchor.organizationId === organizationId) &&
      (month === null || anchor.month === month),
  );
  for (const anchor of asked) {
    const chain = chains.find((one) => one.organizationId === anchor.organizationId && one.month === anchor.month);
    if (await matchesAnchor(pool, anchor, chain)) continue;
    const { organizationId: of, month: ofMonth, places } = anchor;
    faults.push({ organizationId: of, month: ofMonth, place: places, lineId: null, fault: 'anchor' });
  }
  return { chains: chains.length, lines, anchors: asked.length, faults };
}

async function verifyChain(pool: Pool, chain: ChainRow): Promise<{ links: number; faults: ActivityFault[] }> {
  const { organizationId, month, places, droppedPlaces } = chain;
  const of = { organizationId, month };
  const faults: ActivityFault[] = [];
  if (chain.isDroppedEarly) faults.push({ ...of, place: droppedPlaces, lineId: null, fault: 'dropped' });
  let [place, hash, links] = [droppedPlaces, chain.firstHash, 0];
  while (place < places) {
    const values = [organizationId, month, place, hash, Math.min(linksPerCheck, places - place)];
    const { rows } = await pool.query<CheckedRow>(checkActivityLinksSql, values);
    const [checked] = rows;
    faults.push(...(checked?.faults ?? []).map((fault) => ({ ...of, ...fault })));
    if (checked === undefined || checked.place === null || checked.hash === null) break;
    [place, hash, links] = [checked.place, checked.hash, links + checked.links];
  }
  if (place !== places || hash !== chain.hash) faults.push({ ...of, place, lineId: null, fault: 'end' });
  const { rows } = await pool.query<{ lineId: string }>(listUnlinkedActivitySql, [organizationId, month]);
  for (const { lineId } of rows) faults.push({ ...of, place: null, lineId, fault: 'inserted' });
  return { links, faults };
}

/** Returns whether the chain has the anchor's hash at its position, or dropped its month. */
async function matchesAnchor(pool: Pool, anchor: ActivityAnchor, chain: ChainRow | undefined): Promise<boolean> {
  const { organizationId, month, places, hash } = anchor;
  if (chain === undefined || chain.places < places) return false;
  if (places === chain.droppedPlaces) return hash === chain.firstHash;
  if (places < chain.droppedPlaces) return true; // its link was dropped, and the last hash covers it
  const { rows } = await pool.query<{ hash: string }>(findActivityLinkSql, [organizationId, month, places]);
  return rows[0]?.hash === hash;
}
