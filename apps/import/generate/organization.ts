import { dayMs } from '#domain/contract/durations.ts';
import type { Region } from '#domain/contract/regions.ts';
import { familyName, organizationName, personName } from './names.ts';
import { deriveUuid, Random } from './random.ts';

/** The parameters of a sample. The same values give the same document, byte for byte. */
export interface SampleOptions {
  region: Region;
  organizations: number;
  familiesPerOrganization: number;
  /** The number for each family; by default one, and for some an earlier one that ended. */
  grantsPerFamily?: number | undefined;
  /** Days with counts for each family, within the last 110. Each first family has 100. */
  daysPerFamily?: number | undefined;
  seed: number | string;
  /** The day that the sample describes, `2026-11-20`. */
  asOf: string;
}

/** Returns one organization of a sample, computed from its index when it is read. */
export function sampleOrganization(options: SampleOptions, organization: number) {
  const seedPath = [options.seed, options.region, organization] as const;
  const startOfAsOf = Date.parse(`${options.asOf}T00:00:00.000Z`);
  const moment = (ms: number) => new Date(ms).toISOString();
  const id = (...path: (string | number)[]) => deriveUuid(...seedPath, ...path);
  const families = options.familiesPerOrganization;
  const members = 8 + Math.min(40, Math.ceil(families / 20));
  const userId = (member: number) => `usr_${id('member', member).replaceAll('-', '').slice(0, 15)}`;
  const currency = options.region === 'us' ? 'usd' : 'cad';

  const head = () => {
    const d = new Random(...seedPath, 'organization');
    return {
      id: id('organization'),
      name: organizationName(d),
      slug: `sample-${options.region}-${options.seed}-${organization}`.toLowerCase().replaceAll(/[^a-z0-9._-]/g, '-'),
      kind: d.pick(['law_firm', 'mediation', 'legal_aid', 'direct', 'court', 'nonprofit', 'other']),
      status: organization % 7 === 6 ? 'suspended' : 'active',
      createdAt: moment(startOfAsOf - d.whole(700 * dayMs, 1_500 * dayMs)),
    };
  };

  function* roles() {
    yield {
      id: id('role', 'intake'),
      key: 'intake',
      name: 'Intake desk',
      description: 'Sees who started and who ended.',
      permissions: ['org.read', 'org.clients.read'],
    };
    if (organization % 2 === 1) {
      yield {
        id: id('role', 'partner'),
        key: 'partner',
        name: 'Associé',
        description: 'Reads everything and makes keys.',
        permissions: ['org.read', 'org.clients.read', 'org.members.read', 'org.roles.read', 'org.keys.manage'],
      };
    }
  }

  /** The first is an active owner; then one in each state, then active members. */
  function* memberList() {
    const roleKeys = [['owner'], ['admin'], ['billing'], ['analyst'], ['member', 'intake'], ['member']];
    const states = ['active', 'active', 'active', 'active', 'active', 'invited', 'suspended', 'left'];
    for (let member = 0; member < members; member += 1) {
      const d = new Random(...seedPath, 'member', member);
      yield {
        userId: userId(member),
        name: personName(d),
        email: `person${member}.${organization}.${options.region}@example.org`,
        title: d.pick(['Attorney', 'Paralegal', 'Mediator', 'Médiatrice', null]),
        status: states[member] ?? 'active',
        roleKeys: roleKeys[member] ?? ['member'],
      };
    }
  }

  function* familyList() {
    for (let family = 0; family < families; family += 1)
      yield { id: id('family', family), name: familyName(new Random(...seedPath, 'family', family)) };
  }

  /** Seats for about two thirds of the families, divided between plan and subscriptions. */
  const plan = () => {
    const d = new Random(...seedPath, 'plan');
    const paid = Math.ceil(families * 0.4);
    const subscription = (n: number, status: string, quantity: number, renewsInDays: number | null) => ({
      id: id('subscription', n),
      status,
      quantity,
      renewsAt: renewsInDays === null ? null : moment(startOfAsOf + renewsInDays * dayMs),
      cancelAtPeriodEnd: d.chance(0.2),
    });
    return {
      seats: Math.ceil(families / 4) + paid,
      seatPlan: {
        invoiced: Math.ceil(families / 4),
        pricePerSeat: d.chance(0.7) ? { currency, cents: d.whole(15, 25) * 100 } : null,
        subscriptions: [
          subscription(0, d.pick(['active', 'trialing', 'past_due']), paid, d.whole(1, 300)),
          subscription(1, d.pick(['canceled', 'unpaid', 'paused', 'incomplete_expired']), d.whole(1, 9), null),
        ],
      },
    };
  };

  const countGrants = (family: number) =>
    options.grantsPerFamily ?? (new Random(...seedPath, 'grants', family).chance(0.15) ? 2 : 1);

  /** The last grant is mostly active, some with an end in the future; earlier ones have ended. */
  function grant(family: number, nth: number) {
    const d = new Random(...seedPath, 'grant', family, nth);
    const outcome = nth < countGrants(family) - 1 ? 0.9 : d.whole(0, 99) / 100;
    const since = startOfAsOf - d.whole(2 * dayMs, 500 * dayMs);
    const ended = outcome >= 0.8;
    const endsAt = ended ? d.whole(since, startOfAsOf - 1) : startOfAsOf + d.whole(2 * dayMs, 200 * dayMs);
    return {
      id: id('grant', family, nth),
      kind: d.chance(0.75) ? 'attorney' : 'neutral',
      professionalUserId: userId(d.whole(0, members - 1)),
      familyId: id('family', family),
      since: moment(since),
      endsAt: ended || outcome >= 0.68 ? moment(endsAt) : null,
      endReason: ended ? (outcome >= 0.93 ? 'moved' : 'ended') : null,
    };
  }

  function* grants() {
    for (let family = 0; family < families; family += 1)
      for (let nth = 0; nth < countGrants(family); nth += 1) yield grant(family, nth);
  }

  /** Seats that ended with their access, and assigned ones while the plan has free seats. */
  function* seats() {
    let free = plan().seats;
    for (let family = 0; family < families; family += 1) {
      for (const seat of generateSeats(family)) {
        const isCurrent = seat.endedAt === null;
        if (isCurrent && free === 0) continue;
        if (isCurrent) free -= 1;
        yield seat;
      }
    }
  }

  /** At most one assigned seat per family, on its last grant, and sometimes an ended one before. */
  function* generateSeats(family: number) {
    const nth = countGrants(family) - 1;
    const d = new Random(...seedPath, 'seat', family);
    if (nth < 0 || !d.chance(0.6)) return;
    const of = grant(family, nth);
    const givenAt = d.whole(Date.parse(of.since), Math.min(startOfAsOf, Date.parse(of.endsAt ?? options.asOf)));
    const seat = { grantId: of.id, givenAt: moment(givenAt) };
    if (of.endReason !== null) {
      yield { id: id('seat', family, 0), ...seat, endedAt: of.endsAt, reason: 'access_ended' };
      return;
    }
    if (d.chance(0.15)) {
      const reason = d.pick(['ended_by_organization', 'subscription_ended']);
      yield { id: id('seat', family, 0), ...seat, endedAt: moment(d.whole(givenAt, startOfAsOf)), reason };
    }
    yield { id: id('seat', family, 1), ...seat, endedAt: null, reason: null };
  }

  function* referralCodes() {
    for (let code = 0; code < organization % 4; code += 1) {
      const d = new Random(...seedPath, 'code', code);
      yield {
        id: id('code', code),
        code: `${d.pick(['SPRING', 'FRIEND', 'COURT', 'ÉTÉ'])}-${1_000 + code * 1_000 + d.whole(0, 999)}`,
        link: `https://example.org/r/${id('link', code).slice(0, 8)}`,
        label: d.pick(['Front desk', 'Été 2026', null]),
        active: d.chance(0.7),
        referrals: Array.from({ length: d.whole(0, 12) }, (_, referral) => ({
          id: id('referral', code, referral),
          state: d.pick(['signed_up', 'qualified', 'not_counted']),
        })),
      };
    }
  }

  function* referralInvoices() {
    for (let invoice = 0; invoice < (organization % 4) * 4; invoice += 1) {
      const d = new Random(...seedPath, 'invoice', invoice);
      yield {
        id: id('invoice', invoice),
        month: moment(startOfAsOf - d.whole(0, 300) * dayMs).slice(0, 7),
        currency: d.chance(0.9) ? currency : 'eur',
        shareCents: d.whole(100, 90_000),
      };
    }
  }

  function* familyDays() {
    for (let family = 0; family < families; family += 1) {
      const d = new Random(...seedPath, 'days', family);
      const days = family === 0 ? Math.min(100, 8 * (options.daysPerFamily ?? 13)) : (options.daysPerFamily ?? 13);
      const step = Math.max(1, Math.floor(110 / Math.max(1, days)));
      for (let n = 0; n < Math.min(days, 110); n += 1) {
        const [messages, exchanges, expensesDue] = [d.whole(0, 14), d.whole(0, 3), d.whole(0, 2)];
        yield {
          familyId: id('family', family),
          day: moment(startOfAsOf - (1 + n * step) * dayMs).slice(0, 10),
          messages,
          calmMessages: d.whole(Math.floor(messages / 2), messages),
          exchanges,
          exchangesOnTime: d.whole(0, exchanges),
          expensesDue,
          expensesAnsweredIn14Days: d.whole(0, expensesDue),
        };
      }
    }
  }

  return {
    head,
    seatPlan: () => plan().seatPlan,
    lists: {
      roles,
      members: memberList,
      families: familyList,
      grants,
      seats,
      referralCodes,
      referralInvoices,
      familyDays,
    },
  };
}
