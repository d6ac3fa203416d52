import type { Statements } from '#test/delivery-engine.ts';

/** A guard of the engine's SQL, without which the named scenario must fail. */
export interface Mutant {
  /** What is broken. */
  change: string;
  /** The statement, or the function of PostgreSQL. */
  where:
    | keyof Statements
    | 'free_slots'
    | 'claim_deliveries'
    | 'admit_attempt'
    | 'next_attempt_number'
    | 'record_event';
  /** The text that is replaced, everywhere in it, and its replacement. */
  from: string | RegExp;
  to: string;
  /** The scenario that fails. */
  caughtBy: string;
}

const atHost = 'one organization never has more than 20 attempts at a host, whichever relays claim at once';
const perOrganization = 'one organization never has more than 50 attempts of healthy webhooks, and 5 of degraded ones';
const oldestFirst = 'a claim takes the oldest first, numbers them without a gap, and no more than ten of a webhook';
const turns = 'organizations take turns, by the slots that each holds';
const amongBacklogs = 'an event of one organization takes its turn among backlogs of others that are older';
const leaves = 'a claim leaves a delivery that is not due, and one whose former attempt is still in progress';
const stopped =
  'no attempt is admitted of a paused webhook or region, a held or a gone receiver, and the delivery is queued';
const onlyCurrent = 'only the current run is admitted, and one that was only late still is';
const waits = 'a second request for the attempt in progress waits, and the same request gets its admission again';
const killed = 'an attempt that kills its worker counts, and at most three follow the schedule’s number';
const lateFailure = 'a lost attempt waits as the schedule says, and its late failure changes nothing';
const lateSuccess = 'a late 2xx delivers, also what is queued again, exhausted or lost';
const cancelled = 'a cancelled delivery stays cancelled, whatever its attempt in progress brings';
const schedule = 'a schedule ends with its last attempt, which its row says before it is made';
const closes = 'an outcome closes its attempt and frees its slot in the statement that settles the delivery';
const restored = 'an outcome whose attempt PostgreSQL has lost is inserted with its post, and settles in sequence';
const renumbered = 'an outcome whose attempt PostgreSQL has lost gets a number of its own beside a newer attempt';
const renumberedLate =
  'an outcome whose attempt PostgreSQL has lost waits for the admission of a newer one, and sees its number';
const repeated = 'a 2xx whose record is repeated ends no delivery that was sent again meanwhile';
const internal = 'an internal error counts no failure, of the delivery or of its receiver';
const late = 'a run that is a minute late goes back to the queue, and one with a slot or before its time stays';
const admittedLate = 'a late run that is admitted while others are looked for keeps its attempt';
const shortened = 'a lost attempt is the proof of a schedule that was shortened meanwhile';
const notStarted = 'a claim that was not started is free at once, unless its attempt was admitted';
const again = 'a redelivery starts the schedule again, and a retry now keeps its position';
const concurrency = 'a failure halves the concurrency, a 2xx doubles it, a slow one leaves three';
const retryAfter = 'Retry-After delays the webhook for its time, and then one delivery goes first';
const heldByFailure = 'a failure holds its webhook only with Retry-After';
const gone = '410 Gone suspends the webhook with its own cause';
const suspended = 'two events that failed at their last attempt suspend a webhook that has long accepted nothing';
const setBack = 'nothing waits for an hour because the clock was set back by one';
const ordered = 'of one subject, an event waits until the one before is settled, and delays no other subject';
const orderLost = 'an event whose attempts kill their workers unblocks the next of its subject, and not before it ends';
const twoEnd = 'two events of a subject that a repair ends at once unblock the next one';
const unseen = 'an event whose writer and the settlement before it did not see each other is unblocked';
const redelivered = 'a redelivery waits for no event of its subject, and a new event waits for it';
const unordered = 'a webhook without order holds nothing back, also what waited when order was turned off';
const heldUnblocked = 'what waits on a paused webhook is not unblocked before it is resumed';
const removedType = 'nothing waits for an event of a type that was removed from the webhook, also what waited before';
const lastAgain =
  'a last attempt that is lost or has an internal error is made again, and its failure counts for suspension';
const formerUrl = 'an attempt in progress at a former URL says nothing of the new receiver';
const whileChanged = 'an attempt that is admitted while its webhook gets another URL says nothing of that one';
const requested = 'an event released by a request while the one before is settled is still waited for';
const elsewhere = 'an open transaction that has locked a receiver or a delivery stops no other webhook or delivery';
const noLock = 'an open transaction on a webhook’s row stops no claim, attempt, outcome or repair';

/**
 * Guards of the statements, each of which a quick test must prove. A new guard gets a line here.
 */
export const mutants: readonly Mutant[] = [
  // Bounds and the claim.
  {
    change: 'relays count at once',
    where: 'claim_deliveries',
    from: /select array_agg[\s\S]*?locked\) l;/,
    to: 'locked := organizations;',
    caughtBy: atHost,
  },
  {
    change: 'the oldest goes first, whatever slots its organization has',
    where: 'claim_deliveries',
    from: 'r.organization_rank - r.organization_free, random()',
    to: 'r.created_at',
    caughtBy: turns,
  },
  {
    change: 'slots that are held do not count for turns',
    where: 'claim_deliveries',
    from: 'r.organization_rank - r.organization_free, ',
    to: 'r.organization_rank, ',
    caughtBy: turns,
  },
  {
    change: 'the oldest goes first among organizations with equally many slots',
    where: 'claim_deliveries',
    from: 'random()',
    to: 'r.created_at',
    caughtBy: amongBacklogs,
  },
  {
    change: 'a relay waits for another',
    where: 'claim_deliveries',
    from: 'for no key update skip locked) l',
    to: 'for no key update nowait) l',
    caughtBy: atHost,
  },
  { change: 'no bound at a host', where: 'free_slots', from: '20 - u.of_host', to: '99', caughtBy: atHost },
  {
    change: 'no bound of an organization',
    where: 'free_slots',
    from: '50 - u.of_healthy',
    to: '99',
    caughtBy: perOrganization,
  },
  {
    change: 'no bound of degraded webhooks',
    where: 'free_slots',
    from: '5 - u.of_degraded',
    to: '50 - u.of_degraded',
    caughtBy: perOrganization,
  },
  {
    change: 'no bound of a webhook',
    where: 'free_slots',
    from: 'r.concurrency - u.of_webhook',
    to: '99',
    caughtBy: oldestFirst,
  },
  {
    change: 'a slow receiver is healthy',
    where: 'free_slots',
    from: 'or u.slow_ones >= 2',
    to: '',
    caughtBy: 'a webhook is degraded while two of its attempts last longer than 3 s',
  },
  {
    change: 'a paused webhook is claimed',
    where: 'free_slots',
    from: "w.state = 'active'",
    to: 'true',
    caughtBy: stopped,
  },
  {
    change: 'a held receiver is claimed',
    where: 'free_slots',
    from: /\(r\.retry_after_until[\s\S]*?is not true/,
    to: 'true',
    caughtBy: stopped,
  },
  {
    change: 'a gone receiver is claimed',
    where: 'free_slots',
    from: 'r.gone_at is null',
    to: 'true',
    caughtBy: stopped,
  },
  {
    change: 'a paused region is claimed',
    where: 'free_slots',
    from: /\(select a\.state[^)]*\)/,
    to: 'true',
    caughtBy: stopped,
  },
  {
    change: 'a delivery is claimed before its time',
    where: 'claim_deliveries',
    from: 'd.due_at <= statement_timestamp()',
    to: 'true',
    caughtBy: leaves,
  },
  {
    change: 'a new delivery waits for a clock that was set back',
    where: 'claim_deliveries',
    from: 'd.failures = 0 or ',
    to: '',
    caughtBy: setBack,
  },
  {
    change: 'Retry-After lasts until a clock that was set back has caught up',
    where: 'free_slots',
    from: /and r\.retry_after_until <[^)]*\) \+ interval '1 hour 10 seconds'/,
    to: '',
    caughtBy: setBack,
  },
  {
    change: 'Retry-After is compared with one from before a clock was set back',
    where: 'recordOutcomeSql',
    from: /and r\.retry_after_until <[^)]*\) \+ interval '1 hour 10 seconds'/g,
    to: '',
    caughtBy: setBack,
  },
  {
    change: 'a slot is used until a clock that was set back has caught up',
    where: 'expireSql',
    from: 'where s.until > statement_timestamp() +',
    to: 'where false and s.until > statement_timestamp() +',
    caughtBy: setBack,
  },
  {
    change: 'a slot ends when the clock is set back',
    where: 'expireSql',
    from: /set until = statement_timestamp\(\) \+ interval '\d+ milliseconds'/,
    to: 'set until = statement_timestamp()',
    caughtBy: setBack,
  },
  {
    change: 'a run waits for a slot until a clock that was set back has caught up',
    where: 'admit_attempt',
    from: 'least(slot_seconds, greatest',
    to: 'greatest(0, greatest',
    caughtBy: setBack,
  },
  {
    change: 'a retry waits for a clock that was set back',
    where: 'admit_attempt',
    from: /and found_delivery\.due_at < clock_timestamp\(\) \+ greatest\([\s\S]*?\/ 1000\)\)/,
    to: '',
    caughtBy: setBack,
  },
  {
    change: 'a delivery with a slot is claimed',
    where: 'claim_deliveries',
    from: /and not exists \([\s\S]*?s\.event_id = d\.event_id\)/,
    to: '',
    caughtBy: leaves,
  },
  {
    change: 'the newest is claimed first',
    where: 'claim_deliveries',
    from: /order by d\.created_at, d\.event_id\s+limit/,
    to: 'order by d.created_at desc, d.event_id desc limit',
    caughtBy: oldestFirst,
  },
  {
    change: 'a claim does not count its run',
    where: 'claim_deliveries',
    from: 'run = d.run + 1',
    to: 'run = greatest(d.run, 1)',
    caughtBy: onlyCurrent,
  },
  {
    change: 'a number is assigned twice',
    where: 'claim_deliveries',
    from: 'coalesce(d.sequence, p.first + p.nth - 1)',
    to: 'coalesce(p.first + p.nth - 1, d.sequence + 1)',
    caughtBy: again,
  },
  {
    change: 'an admitted claim is returned',
    where: 'returnClaimsSql',
    from: 'and s.attempt_id is null',
    to: '',
    caughtBy: notStarted,
  },
  {
    change: 'an older claim is returned',
    where: 'returnClaimsSql',
    from: /d\.run = c\.run and|and s\.run = t\.run/g,
    to: '',
    caughtBy: notStarted,
  },
  // Admission.
  {
    change: 'an older run is admitted',
    where: 'admit_attempt',
    from: 'found_delivery.run is distinct from asking_run or',
    to: '',
    caughtBy: onlyCurrent,
  },
  {
    change: 'a settled delivery is admitted',
    where: 'admit_attempt',
    from: "or found_delivery.state not in ('queued', 'running')",
    to: '',
    caughtBy: schedule,
  },
  {
    change: 'a reserved slot is used by an older run',
    where: 'admit_attempt',
    from: 'and d.run = asking_run ',
    to: '',
    caughtBy: onlyCurrent,
  },
  {
    change: 'an attempt is admitted beside another',
    where: 'admit_attempt',
    from: 'elsif found_slot.attempt_id is not null then',
    to: 'elsif false then',
    caughtBy: waits,
  },
  {
    change: 'a repeated request is another attempt',
    where: 'admit_attempt',
    from: 'if found_slot.attempt_id is distinct from attempt then',
    to: 'if true then',
    caughtBy: waits,
  },
  {
    change: 'a retry is admitted before its time',
    where: 'admit_attempt',
    from: "clock_timestamp() + interval '1 second'",
    to: "clock_timestamp() + interval '1 day'",
    caughtBy: 'a run that asks before its retry is due waits until then',
  },
  {
    change: 'clocks must agree',
    where: 'admit_attempt',
    from: "clock_timestamp() + interval '1 second'",
    to: 'clock_timestamp()',
    caughtBy: 'a run that asks before its retry is due waits until then',
  },
  {
    change: 'a retry needs no slot',
    where: 'admit_attempt',
    from: 'r.webhook_free > 0',
    to: 'true',
    caughtBy: 'a retry gets no slot beyond the webhook’s, and goes back to the queue at its position',
  },
  {
    change: 'a retry counts while a relay does',
    where: 'admit_attempt',
    from: /if not found then\s+decision := case/,
    to: 'if false then decision := case',
    caughtBy: 'a retry of an organization for which a relay assigns slots asks again, and waits for nothing',
  },
  {
    change: 'a run without an organization asks for ever',
    where: 'admit_attempt',
    from: /case when exists \([^)]*\)\s+then 'lock_busy' else 'stop' end/,
    to: "'lock_busy'",
    caughtBy: 'a run whose organization is not in the database, as after a restore, ends',
  },
  {
    change: 'a first attempt ignores that its webhook stopped',
    where: 'admit_attempt',
    from: /and exists \(\s*select from webhook w[\s\S]*?delivery_switch a\)\)/,
    to: '',
    caughtBy: stopped,
  },
  {
    change: 'the row does not say which attempt is the last',
    where: 'admit_attempt',
    from: 'd.failures >= cardinality(waits)',
    to: 'd.failures > cardinality(waits)',
    caughtBy: schedule,
  },
  {
    change: 'an admitted run stays queued',
    where: 'admit_attempt',
    from: "case when has_slot then 'running' else 'queued' end",
    to: "'queued'",
    caughtBy: onlyCurrent,
  },
  {
    change: 'an admitted run stays due',
    where: 'admit_attempt',
    from: /due_at = case when has_slot[^\n]*\n\s+where/,
    to: "due_at = d.due_at where has_slot <> (found_delivery.state = 'running') and",
    caughtBy: admittedLate,
  },
  // Outcomes.
  {
    change: 'the target is read after the change',
    where: 'recordOutcomeSql',
    from: /from target\n/,
    to: "from target where exists (select from delivery d where d.event_id = $3 and d.state in ('delivered'))\n",
    caughtBy: closes,
  },
  {
    change: 'the slot stays',
    where: 'recordOutcomeSql',
    from: 'and s.attempt_id = $6::uuid',
    to: 'and false',
    caughtBy: closes,
  },
  {
    change: 'any attempt frees the slot',
    where: 'recordOutcomeSql',
    from: 'and s.attempt_id = $6::uuid',
    to: '',
    caughtBy: leaves,
  },
  {
    change: 'a late failure counts',
    where: 'recordOutcomeSql',
    from: 'and exists (select from freed)',
    to: '',
    caughtBy: lateFailure,
  },
  {
    change: 'a late failure overwrites the loss',
    where: 'recordOutcomeSql',
    from: "or a.cause = 'lost' and $4::text = 'delivered'",
    to: "or a.cause = 'lost'",
    caughtBy: lateFailure,
  },
  {
    change: 'a late 2xx is ignored',
    where: 'recordOutcomeSql',
    from: "or a.cause = 'lost' and $4::text = 'delivered'",
    to: '',
    caughtBy: lateSuccess,
  },
  {
    change: 'a late 2xx leaves an exhausted delivery',
    where: 'recordOutcomeSql',
    from: ", 'exhausted') then 'delivered'",
    to: ") then 'delivered'",
    caughtBy: lateSuccess,
  },
  {
    change: 'a 2xx revives a cancelled delivery',
    where: 'recordOutcomeSql',
    from: ", 'exhausted') then 'delivered'",
    to: ", 'exhausted', 'cancelled') then 'delivered'",
    caughtBy: cancelled,
  },
  {
    change: 'the last failure does not exhaust',
    where: 'recordOutcomeSql',
    from: "when exists (select from is_exhausted) then 'exhausted'",
    to: '',
    caughtBy: schedule,
  },
  {
    change: 'a failure does not count',
    where: 'recordOutcomeSql',
    from: /failures = d\.failures \+ [^\n]*/,
    to: 'failures = d.failures,',
    caughtBy: schedule,
  },
  {
    change: 'a lost row is not restored',
    where: 'recordOutcomeSql',
    from: /from target\n/,
    to: 'from target where exists (select from delivery_attempt a where a.id = $6)\n',
    caughtBy: restored,
  },
  {
    change: 'a restored row repeats the number of a newer attempt',
    where: 'recordOutcomeSql',
    from: 'next_attempt_number($1::uuid, $2::uuid, $3::uuid)',
    to: '1',
    caughtBy: renumbered,
  },
  {
    change: 'a restored row is numbered by what the statement saw at its start',
    where: 'recordOutcomeSql',
    from: 'next_attempt_number($1::uuid, $2::uuid, $3::uuid)',
    to: `case when next_attempt_number($1::uuid, $2::uuid, $3::uuid) > 0 then (select coalesce(max(o.number), 0) + 1
      from delivery_attempt o where o.webhook_id = $2::uuid and o.event_id = $3::uuid) end`,
    caughtBy: renumberedLate,
  },
  {
    change: 'the admission of a newer attempt is not waited for',
    where: 'next_attempt_number',
    from: 'for no key update;',
    to: ';',
    caughtBy: renumberedLate,
  },
  {
    change: 'a repeated 2xx ends another schedule',
    where: 'recordOutcomeSql',
    from: 'and exists (select from recorded)\n          and t.state',
    to: 'and t.state',
    caughtBy: repeated,
  },
  {
    change: 'a lost number is not assigned',
    where: 'recordOutcomeSql',
    from: 'coalesce(d.sequence, (select r.sequence from receiver_now r where n.lacks_sequence))',
    to: 'd.sequence',
    caughtBy: restored,
  },
  {
    change: 'an internal error counts',
    where: 'recordOutcomeSql',
    from: "and $4::text = 'failed', false)",
    to: ', false)',
    caughtBy: internal,
  },
  {
    change: 'an internal error is the receiver’s',
    where: 'recordOutcomeSql',
    from: "and $4::text <> 'internal_error'",
    to: '',
    caughtBy: internal,
  },
  {
    change: 'a failure leaves the concurrency',
    where: 'recordOutcomeSql',
    from: 'greatest(1, r.concurrency / 2)',
    to: 'r.concurrency',
    caughtBy: concurrency,
  },
  {
    change: 'a slow 2xx leaves the concurrency',
    where: 'recordOutcomeSql',
    from: 'greatest(3, r.concurrency / 2)',
    to: 'r.concurrency',
    caughtBy: concurrency,
  },
  {
    change: 'a 2xx leaves the concurrency',
    where: 'recordOutcomeSql',
    from: 'least(10, r.concurrency * 2)',
    to: 'r.concurrency',
    caughtBy: concurrency,
  },
  {
    change: 'Retry-After holds nothing',
    where: 'recordOutcomeSql',
    from: /retry_after_until = case[\s\S]*?end,\n\s+gone_at/,
    to: 'gone_at',
    caughtBy: retryAfter,
  },
  {
    change: 'a late 2xx opens a held receiver',
    where: 'recordOutcomeSql',
    from: /or \(r\.retry_after_until[^\n]*\n[^\n]* then 1/g,
    to: 'then 1',
    caughtBy: retryAfter,
  },
  {
    change: 'every failure holds',
    where: 'recordOutcomeSql',
    from: '$21::integer is null then r.retry_after_until',
    to: "$21::integer is null then clock_timestamp() + interval '60 seconds'",
    caughtBy: heldByFailure,
  },
  {
    change: '410 is any failure',
    where: 'recordOutcomeSql',
    from: 'case when $12::smallint = 410 then',
    to: 'case when false then',
    caughtBy: gone,
  },
  {
    change: 'one event that fails again is two',
    where: 'recordOutcomeSql',
    from: 'where e.is_first',
    to: '',
    caughtBy: suspended,
  },
  {
    change: 'an outcome locks the webhook',
    where: 'recordOutcomeSql',
    from: 'from target t where $9::boolean',
    to: 'from (select t.* from target t, webhook w where w.id = $2 for no key update of w) t where $9::boolean or true',
    caughtBy: noLock,
  },
  // Repairs.
  {
    change: 'a lost attempt does not count',
    where: 'expireSql',
    from: "(x.is_current and x.kind = 'lost')::integer",
    to: '0',
    caughtBy: killed,
  },
  {
    change: 'a lost attempt stays open',
    where: 'expireSql',
    from: 'and a.id = f.attempt_id and a.finished_at is null',
    to: 'and false',
    caughtBy: killed,
  },
  {
    change: 'a lost attempt of a longer schedule is no proof',
    where: 'expireSql',
    from: 'a.ends_schedule or f.is_current and f.ends_schedule',
    to: 'a.ends_schedule',
    caughtBy: shortened,
  },
  {
    change: 'losses never exhaust',
    where: 'expireSql',
    from: /d\.failures \+ 1 >= \$1::integer/g,
    to: 'd.failures + 1 >= $1::integer + 1',
    caughtBy: killed,
  },
  {
    change: 'a lost attempt is due at once',
    where: 'expireSql',
    from: "when x.kind <> 'lost' then",
    to: 'when true then',
    caughtBy: lateFailure,
  },
  {
    change: 'a slot expires before its time',
    where: 'expireSql',
    from: /and s\.until < statement_timestamp\(\)|where s\.until < statement_timestamp\(\)/g,
    to: '',
    caughtBy: late,
  },
  {
    change: 'a run with a slot is late',
    where: 'expireSql',
    from: /and not exists \(\s+select from slot s[\s\S]*?s\.event_id = d\.event_id\)/,
    to: '',
    caughtBy: late,
  },
  {
    change: 'nothing is late',
    where: 'expireSql',
    from: "where d.state = 'running' and d.due_at <",
    to: 'where false and d.due_at <',
    caughtBy: late,
  },
  {
    change: 'a run is late at once',
    where: 'expireSql',
    from: 'make_interval(secs => $2::double precision)',
    to: 'make_interval(secs => $2::double precision * 0)',
    caughtBy: late,
  },
  // Requests, passes and suspension.
  {
    change: 'a redelivery keeps the place',
    where: 'redeliverOneSql',
    from: /failures = case[\s\S]*?end/,
    to: 'failures = d.failures',
    caughtBy: again,
  },
  {
    change: 'a retry now starts again',
    where: 'redeliverOneSql',
    from: /failures = case[\s\S]*?end/,
    to: 'failures = 0',
    caughtBy: again,
  },
  {
    change: 'an attempt in progress is requested again',
    where: 'redeliverOneSql',
    from: 'and not f.is_attempting',
    to: '',
    caughtBy: again,
  },
  {
    change: 'a cancelled delivery is sent again',
    where: 'redeliverOneSql',
    from: "and d.state <> 'cancelled'",
    to: '',
    caughtBy: cancelled,
  },
  {
    change: 'a settled delivery is cancelled',
    where: 'cancelOneSql',
    from: "and d.state in ('queued', 'running', 'blocked')",
    to: '',
    caughtBy: cancelled,
  },
  {
    change: 'an active webhook’s sleepers wake',
    where: 'requeueHeldSql',
    from: "w.state in ('paused', 'suspended') and",
    to: '',
    caughtBy: 'a pause and a resume keep the position in the schedule, and what slept is due first',
  },
  {
    change: 'a pause starts the schedule again',
    where: 'requeueHeldSql',
    from: /failures = case[\s\S]*?end/,
    to: 'failures = 0',
    caughtBy: 'a pause and a resume keep the position in the schedule, and what slept is due first',
  },
  {
    change: 'one event suspends',
    where: 'suspendWebhooksSql',
    from: 'r.exhausted_in_row >= 2',
    to: 'r.exhausted_in_row >= 1',
    caughtBy: suspended,
  },
  {
    change: 'a short failure suspends',
    where: 'suspendWebhooksSql',
    from: 'and r.failing_since <= statement_timestamp() - make_interval(secs => $1)',
    to: 'and $1::double precision > 0',
    caughtBy: suspended,
  },
  {
    change: 'suspension waits for a webhook’s row',
    where: 'suspendWebhooksSql',
    from: 'for no key update of w skip locked',
    to: 'for no key update of w',
    caughtBy: noLock,
  },
  // Order.
  {
    change: 'nothing waits for the event before',
    where: 'record_event',
    from: 's.ordered and exists',
    to: 'false and exists',
    caughtBy: ordered,
  },
  {
    change: 'an event waits for another subject',
    where: 'record_event',
    from: 'and d.subject_id = subject',
    to: 'and d.subject_id is not null',
    caughtBy: ordered,
  },
  {
    change: 'an event waits for a settled one',
    where: 'record_event',
    from: /and d\.state in \('queued', 'running', 'blocked'\)/,
    to: '',
    caughtBy: redelivered,
  },
  {
    change: 'an event waits without the option',
    where: 'record_event',
    from: 's.ordered and exists',
    to: 'exists',
    caughtBy: unordered,
  },
  {
    change: 'what waited still waits without the option',
    where: 'unblockSql',
    from: 'not (w.ordered and exists',
    to: 'not (exists',
    caughtBy: unordered,
  },
  {
    change: 'what waits on a paused webhook is put into the queue',
    where: 'unblockSql',
    from: "w.state = 'active' and",
    to: '',
    caughtBy: heldUnblocked,
  },
  {
    change: 'a new event waits for one of a removed type',
    where: 'record_event',
    from: '= any (s.event_types)',
    to: 'is not null',
    caughtBy: removedType,
  },
  {
    change: 'what waited for an event of a removed type still waits',
    where: 'unblockSql',
    from: 'select e.type = any (w.event_types)',
    to: 'select true',
    caughtBy: removedType,
  },
  {
    change: 'an open event of a removed type holds back the next when another is settled',
    where: 'cancelOneSql',
    from: 'select e.type = any (w.event_types)',
    to: 'select true',
    caughtBy: removedType,
  },
  {
    change: 'a 2xx unblocks nothing',
    where: 'recordOutcomeSql',
    from: "n.subject_id is not null and n.state in ('delivered', 'exhausted')",
    to: "n.state = 'exhausted'",
    caughtBy: ordered,
  },
  {
    change: 'the end of the schedule unblocks nothing',
    where: 'recordOutcomeSql',
    from: "n.subject_id is not null and n.state in ('delivered', 'exhausted')",
    to: "n.state = 'delivered'",
    caughtBy: ordered,
  },
  {
    change: 'any failure unblocks the next',
    where: 'recordOutcomeSql',
    from: "n.subject_id is not null and n.state in ('delivered', 'exhausted')",
    to: 'n.subject_id is not null',
    caughtBy: ordered,
  },
  {
    change: 'the newest is unblocked first',
    where: 'recordOutcomeSql',
    from: 'order by b.created_at, b.event_id limit 1',
    to: 'order by b.created_at desc, b.event_id desc limit 1',
    caughtBy: ordered,
  },
  {
    change: 'the next is unblocked before a redelivery',
    where: 'recordOutcomeSql',
    from: 'where not exists (\n      select from delivery p',
    to: 'where true or not exists (\n      select from delivery p',
    caughtBy: redelivered,
  },
  {
    change: 'a cancellation unblocks nothing',
    where: 'cancelOneSql',
    from: "and b.state = 'blocked' and b.event_id <> s.event_id",
    to: 'and false',
    caughtBy: ordered,
  },
  {
    change: 'the end by lost attempts unblocks nothing',
    where: 'expireSql',
    from: 'f.attempt_id is not null and f.ends_schedule',
    to: 'false',
    caughtBy: orderLost,
  },
  {
    change: 'a lost attempt unblocks the next',
    where: 'expireSql',
    from: 'f.attempt_id is not null and f.ends_schedule',
    to: 'true',
    caughtBy: orderLost,
  },
  {
    change: 'what ends in the same statement is waited for',
    where: 'expireSql',
    from: 'and (p.webhook_id, p.event_id) not in (select o.webhook_id, o.event_id from settled o)',
    to: 'and p.event_id <> s.event_id',
    caughtBy: twoEnd,
  },
  {
    change: 'a blocked delivery stays without one before it',
    where: 'unblockSql',
    from: "set state = 'queued'",
    to: 'set state = d.state',
    caughtBy: unseen,
  },
  {
    change: 'a blocked delivery overtakes',
    where: 'unblockSql',
    from: 'where g.is_free and',
    to: 'where',
    caughtBy: unseen,
  },
  {
    change: 'what a request has released meanwhile is not waited for',
    where: 'recordOutcomeSql',
    from: "and p.state in ('queued', 'running', 'blocked')",
    to: "and p.state in ('queued', 'running')",
    caughtBy: requested,
  },
  {
    change: 'a last attempt that is made again is of another schedule',
    where: 'recordOutcomeSql',
    from: 'max(a.number) filter (where not a.ends_schedule)',
    to: 'max(a.number) - 1',
    caughtBy: lastAgain,
  },
  {
    change: 'an attempt at a former URL counts',
    where: 'recordOutcomeSql',
    from: 'and (t.lacks_sequence or r.reset_at = $7::timestamptz)',
    to: 'and $7::text is not null',
    caughtBy: formerUrl,
  },
  {
    change: 'an attempt at a former URL counts when it began after the statement that changed the URL',
    where: 'recordOutcomeSql',
    from: 'r.reset_at = $7::timestamptz',
    to: 'r.reset_at <= $10::timestamptz and $7::text is not null',
    caughtBy: whileChanged,
  },

  // Locks that others hold.
  {
    change: 'a claim waits for a receiver',
    where: 'claim_deliveries',
    from: /for no key update skip locked(?=\s+\) d)/,
    to: 'for no key update of d skip locked',
    caughtBy: elsewhere,
  },
  {
    change: 'a retry waits for its delivery while it assigns slots',
    where: 'admit_attempt',
    from: 'for no key update skip locked',
    to: 'for no key update of o skip locked for no key update of d',
    caughtBy: elsewhere,
  },
  {
    change: 'a retry of a held delivery locks its organization',
    where: 'admit_attempt',
    from: 'from delivery d join slot_lock o',
    to: 'from slot_lock o join delivery d',
    caughtBy: elsewhere,
  },
  {
    change: 'returned claims wait for a delivery',
    where: 'returnClaimsSql',
    from: 'for no key update skip locked',
    to: 'for no key update',
    caughtBy: elsewhere,
  },
];
