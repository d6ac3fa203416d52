import fc from 'fast-check';
import { type Loose, uuid } from './document.ts';

/** One change of one object of a document, as a platform's next document has it. */
type Edit = (organization: Loose, pick: (below: number) => number, fresh: (kind: string) => string) => void;

const pickFrom = (list: Loose[], pick: (below: number) => number): Loose | undefined => list[pick(list.length)];
const lists = ['members', 'families', 'grants', 'seats', 'referralCodes', 'referralInvoices', 'familyDays', 'roles'];
const ended = '2026-11-01T00:00:00.000Z';

const later = (pick: (below: number) => number) => `2998-01-0${1 + pick(9)}T00:00:00.000Z`;
const liesAhead = ({ since, endReason }: Loose) => since > '2998' && endReason === null;
const isAssigned = (seat: Loose) => seat.endedAt === null;

/** Leaves out some objects of a list, or all of it, and the assigned seats of grants that it leaves out. */
const leaveOut: Edit = (o, pick) => {
  const name = ['grants', 'seats', 'members', ...lists][pick(lists.length + 3)] ?? '';
  if (pick(6) === 0) delete o[name];
  else o[name] = o[name].filter(() => pick(4) > 0);
  if (name !== 'grants' || o.grants === undefined) return;
  const left = new Set(o.grants.map((grant: Loose) => grant.id));
  o.seats = o.seats?.filter((seat: Loose) => !isAssigned(seat) || left.has(seat.grantId));
};

const edits: Edit[] = [
  (o) => Object.assign(o, { name: `${o.name}!` }),
  ...new Array<Edit>(6).fill(leaveOut),
  (o, pick) => Object.assign(pickFrom(o.members, pick) ?? {}, { title: 'Of counsel' }),
  (o, pick) => Object.assign(pickFrom(o.members, pick) ?? {}, { roleKeys: pick(2) === 0 ? [] : ['member'] }),
  (o, _pick, fresh) =>
    o.members.push({ ...o.members[0], userId: fresh('a'), email: `${fresh('b')}@example.org`, roleKeys: ['analyst'] }),
  (o, pick) => Object.assign(pickFrom(o.families, pick) ?? {}, { name: 'Renamed' }),
  (o, pick) => {
    const grant = pickFrom(o.grants, pick);
    if (grant === undefined || grant.endReason !== null) return;
    // Access that has not begun is withdrawn.
    if (grant.since > ended) return void Object.assign(grant, { endsAt: grant.since, endReason: 'ended' });
    Object.assign(grant, { endsAt: ended, endReason: 'ended' });
    const isOfGrant = (seat: Loose) => seat.grantId === grant.id && isAssigned(seat);
    // The document says the same of the seat, or nothing.
    if (pick(2) === 0) o.seats = o.seats.filter((seat: Loose) => !isOfGrant(seat));
    else for (const seat of o.seats.filter(isOfGrant)) Object.assign(seat, { endedAt: ended, reason: 'access_ended' });
  },
  (o, pick) => {
    const grant = pickFrom(o.grants, pick);
    if (grant?.endReason === null && grant.endsAt === null)
      grant.endsAt = pick(2) === 0 ? null : '2999-01-01T00:00:00.000Z';
  },
  // Access that lies ahead: more of it, moved to another day, or begun.
  (o, pick, fresh) => {
    const grant = pickFrom(o.grants, pick);
    if (grant !== undefined)
      o.grants.push({ ...grant, id: fresh('f'), since: later(pick), endsAt: null, endReason: null });
  },
  (o, pick) => {
    const grant = pickFrom(o.grants.filter(liesAhead), pick);
    if (grant !== undefined) grant.since = pick(3) === 0 ? '2026-10-01T00:00:00.000Z' : later(pick);
  },
  (o, pick, fresh) => {
    const grant = pickFrom(o.grants, pick);
    if (grant === undefined) return;
    const id = fresh('d');
    o.grants.push({ ...grant, id, since: '2026-10-01T00:00:00.000Z', endsAt: null, endReason: null });
    if (!o.seats.some(isAssigned))
      o.seats.push({ id: fresh('e'), grantId: id, givenAt: '2026-10-02T00:00:00.000Z', endedAt: null, reason: null });
  },
  (o, pick) => {
    const seat = pickFrom(o.seats, pick);
    if (seat?.endedAt === null && seat.givenAt < ended)
      Object.assign(seat, { endedAt: ended, reason: 'ended_by_organization' });
  },
  (o) => Object.assign(o.seatPlan ?? {}, { invoiced: 500 }),
  (o, pick) => Object.assign(pickFrom(o.seatPlan?.subscriptions ?? [], pick) ?? {}, { quantity: 7 }),
  (o, pick) => o.seatPlan?.subscriptions?.splice(pick(2), 1),
  (o, pick) => Object.assign(pickFrom(o.familyDays, pick) ?? {}, { messages: 1_000, exchanges: 1_000 }),
  (o, pick) => Object.assign(pickFrom(o.referralCodes, pick) ?? {}, { active: pick(2) === 0, label: 'x' }),
];

/** Returns a changed copy of a document, the same for the same seed. */
export function changeDocument(document: Loose, seed: number): Loose {
  const copy = structuredClone(document);
  const draws = fc.sample(fc.noBias(fc.nat()), { numRuns: 20_000, seed });
  let [drawn, made] = [0, 0];
  const pick = (below: number) => (draws[drawn++ % draws.length] ?? 0) % Math.max(1, below);
  const fresh = (kind: string) => uuid(kind, seed * 1_000 + made++);
  for (let left = 1 + pick(20); left > 0; left -= 1) {
    const organization = pickFrom(copy.organizations, pick);
    // An edit above may have left a list out.
    const whole = Object.fromEntries(lists.map((name) => [name, organization[name] ?? []]));
    const edited = { ...organization, ...whole };
    edits[pick(edits.length)]?.(edited, pick, fresh);
    for (const [name, value] of Object.entries<Loose>(edited))
      if (organization[name] !== undefined || value?.length > 0) organization[name] = value;
    for (const name of lists) if (!(name in edited)) delete organization[name];
  }
  return copy;
}

/** Returns the document with the lists that it leaves out, which stay as they were. */
export function withStoredLists(document: Loose, before: Loose): Loose {
  const organizations = document.organizations.map((one: Loose, n: number) => ({ ...before.organizations[n], ...one }));
  return { ...document, organizations };
}
