import { escapeLiteral } from 'pg';
import { type SampleOptions, sampleOrganization } from './organization.ts';

type Sample = ReturnType<typeof sampleOrganization>;
type Listed<Name extends keyof Sample['lists']> =
  ReturnType<Sample['lists'][Name]> extends Generator<infer T> ? T : never;
type Seat = Listed<'seats'>;

/** Days of one call: about 100 KB of text. */
const daysPerCall = 500;

/** Writes the calls of schema `platform` that bring in the same organizations, each in a transaction. */
export function* callsText(options: SampleOptions): Generator<string> {
  for (let index = 0; index < options.organizations; index += 1) {
    yield 'begin;\n';
    yield* organizationCalls(sampleOrganization(options, index));
    yield 'commit;\n';
  }
}

function* organizationCalls(sample: Sample): Generator<string> {
  const { id: organization, createdAt, ...head } = sample.head();
  const { roles, members, families, referralCodes, referralInvoices } = sample.lists;
  const call = (name: string, values: Readonly<Record<string, unknown>>) => callText(name, { organization, ...values });
  yield call('put_organization', { ...head, created_at: createdAt });
  for (const role of roles()) yield call('put_role', role);
  for (const { userId, roleKeys, ...member } of members())
    yield call('put_member', { ...member, member: userId, roles: roleKeys });
  for (const family of families()) yield call('put_family', family);
  const { invoiced, pricePerSeat, subscriptions } = sample.seatPlan();
  const price = pricePerSeat && { price_currency: pricePerSeat.currency, price_cents: pricePerSeat.cents };
  yield call('put_plan', { invoiced, ...price });
  for (const { renewsAt, cancelAtPeriodEnd, ...subscription } of subscriptions)
    yield call('put_subscription', { ...subscription, renews_at: renewsAt, cancel_at_period_end: cancelAtPeriodEnd });
  yield* accessCalls(sample, call);
  for (const { referrals, ...code } of referralCodes()) {
    yield call('put_referral_code', code);
    for (const referral of referrals) yield call('put_referral', { ...referral, code_id: code.id });
  }
  for (const { shareCents, ...invoice } of referralInvoices())
    yield call('put_invoice', { ...invoice, share_cents: shareCents });
  yield* dayCalls(sample, call);
}

type Call = (name: string, values: Readonly<Record<string, unknown>>) => string;

/**
 * Seats are given while their access is active, and access that has ended ends before the next one
 * begins. Seats that are still assigned come last: until then no more than one seat is occupied.
 */
function* accessCalls({ lists }: Sample, call: Call): Generator<string> {
  const seats = lists.seats(); // in the order of their grants
  let next = seats.next();
  for (const {
    id,
    kind,
    professionalUserId: professional,
    familyId: family,
    since,
    endsAt,
    endReason,
  } of lists.grants()) {
    const ends = endReason === null ? { ends_at: endsAt } : {};
    yield call('start_grant', { id, kind, professional, family, since, ...ends });
    for (; !next.done && next.value.grantId === id; next = seats.next()) yield* endedSeatCalls(next.value, call);
    if (endReason !== null) yield call('end_grant', { id, reason: endReason, ended_at: endsAt });
  }
  for (const seat of lists.seats()) if (seat.endedAt === null) yield assignSeat(seat, call);
}

const assignSeat = ({ id, grantId, givenAt }: Seat, call: Call) =>
  call('give_seat', { id, grant_id: grantId, given_at: givenAt });

/** The end of its access ends a seat too. */
function* endedSeatCalls(seat: Seat, call: Call): Generator<string> {
  const { id, reason, endedAt } = seat;
  if (endedAt === null) return;
  yield assignSeat(seat, call);
  if (reason !== 'access_ended') yield call('end_seat', { id, reason, ended_at: endedAt });
}

function* dayCalls({ lists }: Sample, call: Call): Generator<string> {
  let days: object[] = [];
  for (const one of lists.familyDays()) {
    const { familyId, calmMessages, exchangesOnTime, expensesDue, expensesAnsweredIn14Days, ...same } = one;
    days.push({
      family: familyId,
      ...same,
      calm_messages: calmMessages,
      exchanges_on_time: exchangesOnTime,
      expenses_due: expensesDue,
      expenses_answered_in_14_days: expensesAnsweredIn14Days,
    });
    if (days.length < daysPerCall) continue;
    yield call('put_family_days', { days: JSON.stringify(days) });
    days = [];
  }
  if (days.length > 0) yield call('put_family_days', { days: JSON.stringify(days) });
}

function callText(name: string, values: Readonly<Record<string, unknown>>): string {
  const named = Object.entries(values).map(([argument, value]) => `${argument} => ${literal(value)}`);
  return `select platform.${name}(${named.join(', ')});\n`;
}

function literal(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `array[${value.map(literal).join(', ')}]::text[]`;
  return typeof value === 'string' ? escapeLiteral(value) : String(value);
}
