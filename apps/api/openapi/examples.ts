import type { EventType } from '#domain/contract/events.ts';
/**
 * An example answer: its summary and its body. A test checks every one against the contract's
 * schema.
 */
export interface Example {
  summary: string;
  value: unknown;
}

/** The organization of all examples. */
export const exampleOrgId = '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d';

const grant = '7f3c2f0e-6a1b-4d0e-8f57-2b9a4c1d5e6f';
const otherGrant = '51c9b86e-43a9-40b6-a568-b503a6e65de8';
const thirdGrant = '8980d2df-7146-4f21-8b6c-d27d3224b7cb';
const otherWebhook = '019a9f2e-8d10-7a52-8c31-0a1b2c3d4e61';
const seat = 'c1a7d5b0-2f64-4c0e-9b8d-6e1f3a2d4c5b';
const owner = { id: '0a1f0000-0000-7000-8000-000000000001', key: 'owner', name: 'Owner' };
const intake = { id: '5d0e7b6a-91c3-4f28-a7d4-1b2c3d4e5f60', key: 'intake', name: 'Intake' };

/**
 * Example answers of each read, by operation and name. People are invented; families are names
 * only.
 */
export const responseExamples: Record<string, Record<string, Example>> = {
  getOrg: {
    firm: {
      summary: 'A law firm',
      value: {
        id: exampleOrgId,
        name: 'Rossi & Tremblay Family Law',
        slug: 'rossi-tremblay',
        kind: 'law_firm',
        status: 'active',
        createdAt: '2025-10-02T00:09:15.351Z',
      },
    },
  },
  getFirmRoster: {
    roster: {
      summary: 'Three families, one of them no longer',
      value: {
        clients: [
          {
            grantId: otherGrant,
            kind: 'neutral',
            professional: 'Sam Moreau',
            family: 'Eze–Dubois family',
            since: '2025-11-09T10:24:36.676Z',
            endsAt: '2026-03-07T20:04:35.546Z',
            status: 'ended',
          },
          {
            grantId: thirdGrant,
            kind: 'neutral',
            professional: 'Sam Moreau',
            family: 'Kaplan–Castellanos family',
            since: '2025-12-04T15:45:57.149Z',
            endsAt: '2027-01-31T00:00:00.000Z',
            status: 'active',
          },
          {
            grantId: grant,
            kind: 'attorney',
            professional: 'Mina Álvarez',
            family: 'Park–Oduya family',
            since: '2026-01-01T00:00:00.000Z',
            endsAt: null,
            status: 'active',
          },
        ],
        seats: { members: 4, professionalsWithClients: 2, activeFamilies: 2 },
      },
    },
  },
  listMembers: {
    members: {
      summary: 'An owner, and someone who has not answered the invitation yet',
      value: [
        {
          userId: 'user_2mQ8fKx',
          name: 'Mina Álvarez',
          email: 'mina@rossi-tremblay.example',
          title: 'Partner',
          status: 'active',
          roles: [intake, owner],
        },
        {
          userId: 'user_7bT1wZc',
          name: 'Noor Haddad',
          email: 'noor@rossi-tremblay.example',
          title: null,
          status: 'invited',
          roles: [intake],
        },
      ],
    },
  },
  getFirmOutcomes: {
    shown: {
      summary: 'Enough families',
      value: {
        windowDays: 90,
        families: 12,
        minimumFamilies: 5,
        shown: true,
        calmMessages: { count: 1841, of: 1975, percent: 93.2 },
        exchangesOnTime: { count: 203, of: 221, percent: 91.9 },
        expensesAnsweredIn14Days: null,
      },
    },
    withheld: {
      summary: 'Too few families',
      value: {
        windowDays: 90,
        families: 3,
        minimumFamilies: 5,
        shown: false,
        calmMessages: null,
        exchangesOnTime: null,
        expensesAnsweredIn14Days: null,
      },
    },
  },
  listOrgReferralCodes: {
    codes: {
      summary: 'One code in use, one retired',
      value: [
        {
          id: '3f9d2c1b-8a7e-4d6f-b5c4-0e1f2a3b4c5d',
          code: 'ROSSI-2026',
          link: 'https://join.org-api.example/r/ROSSI-2026',
          label: 'Front desk',
          active: true,
          counts: { signedUp: 14, qualified: 9, notCounted: 2 },
        },
        {
          id: 'a4b3c2d1-e0f9-4876-9543-210fedcba987',
          code: 'SPRING-FAIR',
          link: 'https://join.org-api.example/r/SPRING-FAIR',
          label: null,
          active: false,
          counts: { signedUp: 3, qualified: 1, notCounted: 0 },
        },
      ],
    },
  },
  getOrgReferralEarnings: {
    earnings: {
      summary: 'Two months',
      value: {
        months: [
          { month: '2026-08', currency: 'usd', invoices: 6, shareCents: 8940 },
          { month: '2026-09', currency: 'usd', invoices: 7, shareCents: 10430 },
        ],
      },
    },
  },
  listRoles: {
    roles: {
      summary: 'A system role and an own role',
      value: [
        {
          id: owner.id,
          key: 'billing',
          name: 'Billing',
          description: 'Sees the organization and its seats, and assigns and ends seats.',
          isSystem: true,
          permissions: ['org.read', 'org.billing.manage', 'org.seats.manage'],
        },
        {
          ...intake,
          description: 'Sees the roster.',
          isSystem: false,
          permissions: ['org.read', 'org.clients.read'],
        },
      ],
    },
  },
  getOrgSeats: {
    seats: {
      summary: 'One subscription and invoiced seats',
      value: {
        total: 30,
        used: 17,
        paid: 20,
        invoiced: 10,
        pricePerSeat: { currency: 'usd', cents: 1900 },
        subscriptions: [
          { status: 'active', quantity: 20, renewsAt: '2026-12-01T00:00:00.000Z', cancelAtPeriodEnd: false },
        ],
      },
    },
  },
  getOrgSeatFamilies: {
    families: {
      summary: 'One of each',
      value: {
        seats: [
          {
            id: seat,
            grantId: grant,
            family: 'Park–Oduya family',
            professional: 'Mina Álvarez',
            kind: 'attorney',
            givenAt: '2026-01-02T15:30:00.000Z',
          },
        ],
        eligible: [
          { grantId: thirdGrant, family: 'Kaplan–Castellanos family', professional: 'Sam Moreau', kind: 'neutral' },
        ],
        ended: [
          {
            id: 'e8d7c6b5-a493-4281-9f0e-1d2c3b4a5968',
            family: 'Eze–Dubois family',
            endedAt: '2026-03-07T20:04:35.546Z',
            reason: 'access_ended',
          },
        ],
      },
    },
  },
};

/**
 * The event of the signature's test vector. Its body without spaces gives the signatures shown with
 * it.
 */
const signedEventId = '3b1f8a52-9c0e-4d57-8a41-6f0f2f1c7e10';

/** The secret of the test vector. It signs nothing else. */
export const exampleSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** The headers of one delivery, by name: those of the test vector. */
export const deliveryHeaderExamples = {
  'Service-Signature': 't=1767225600,v1=0acf07307d6859d8ae86752f722a165b3b4e65f29d0707a427a3e03b0a034fe2',
  'webhook-id': signedEventId,
  'webhook-timestamp': 1767225600,
  'webhook-signature': 'v1,8IlTb1gstICpTK/w31TIlX2dS0wWJt3+uOAVxuWR4IQ=',
  'webhook-endpoint': '019a9f2e-8d10-7a52-8c31-0a1b2c3d4e5f',
  'webhook-attempt': 1,
  'webhook-sequence': 4711,
};

const organization = { id: exampleOrgId };

export const eventExamples: Record<EventType, Example> = {
  'client.started': {
    summary: 'An attorney was given access; the body of the test vector',
    value: {
      id: signedEventId,
      type: 'client.started',
      createdAt: '2026-01-01T00:00:00.000Z',
      organization,
      data: { grantId: grant, kind: 'attorney' },
    },
  },
  'client.ended': {
    summary: 'The professional moved the work out of the organization',
    value: {
      id: '019a9f2e-8d10-7a52-8c31-5e6f7a8b9c0d',
      type: 'client.ended',
      createdAt: '2026-03-07T20:04:35.546Z',
      organization,
      data: { grantId: otherGrant, kind: 'neutral', reason: 'moved' },
    },
  },
  'seat.given': {
    summary: 'A family got a seat',
    value: {
      id: '019a9f2e-9b34-7c11-9d42-0a1b2c3d4e5f',
      type: 'seat.given',
      createdAt: '2026-01-02T15:30:00.000Z',
      organization,
      data: { seatId: seat, grantId: grant },
    },
  },
  'seat.ended': {
    summary: 'A seat ended because access did',
    value: {
      id: '019a9f2e-a7f8-7e93-8b65-9f8e7d6c5b4a',
      type: 'seat.ended',
      createdAt: '2026-03-07T20:04:35.546Z',
      organization,
      data: { seatId: 'e8d7c6b5-a493-4281-9f0e-1d2c3b4a5968', grantId: otherGrant, reason: 'access_ended' },
    },
  },
  'webhook.failing': {
    summary: 'A receiver has accepted nothing for an hour',
    value: {
      id: '019a9f2e-8d10-7a52-8c31-5e6f7a8b9c0e',
      type: 'webhook.failing',
      createdAt: '2026-03-09T09:10:21.004Z',
      organization,
      data: { webhookId: otherWebhook, failingSince: '2026-03-09T08:09:44.120Z' },
    },
  },
  'webhook.suspended': {
    summary: 'Its receiver accepted nothing for days',
    value: {
      id: '019a9f2e-8d10-7a52-8c31-5e6f7a8b9c0f',
      type: 'webhook.suspended',
      createdAt: '2026-03-12T19:30:47.311Z',
      organization,
      data: { webhookId: otherWebhook, suspendedAt: '2026-03-12T19:30:02.874Z', reason: 'failures' },
    },
  },
  'key.expiring': {
    summary: 'A key expires in three days',
    value: {
      id: '019a9f2e-8d10-7a52-8c31-5e6f7a8b9c10',
      type: 'key.expiring',
      createdAt: '2026-03-15T00:00:32.590Z',
      organization,
      data: {
        keyId: '019a9f2e-8d10-7a52-8c31-0a1b2c3d4e60',
        keyPrefix: 'aln_us_Q7m2',
        expiresAt: '2026-03-18T00:00:00.000Z',
      },
    },
  },
};
