import type { ConsoleInstallation, Enrolled } from '../setup.ts';
import { insertWebhook } from '../webhook-stories.ts';
import type { JudgedPage } from './page.ts';

const families = [
  'Rossi family',
  'משפחת כהן',
  '<i>Nguyen</i> & sons',
  '=SUM(A1)',
  'Überlang'.repeat(60),
  'Rivera–Stone',
];

const made = new WeakMap<ConsoleInstallation, ReturnType<typeof makeClients>>();

/** The roster of an installation, created once. */
function getClients(t: ConsoleInstallation, ada: Enrolled): ReturnType<typeof makeClients> {
  const clients = made.get(t) ?? makeClients(t, ada);
  made.set(t, clients);
  return clients;
}

/**
 * A roster with names of all kinds, an active seat and an ended one. Returns the access and the
 * seat of the first family.
 */
async function makeClients(t: ConsoleInstallation, ada: Enrolled): Promise<{ grantId: string; seatId: string }> {
  const { orgId } = ada;
  const professional = await t.make.member({ orgId, name: 'Bo Lindqvist', roleKey: 'member' });
  const made: { grantId: string; seatId: string }[] = [];
  for (const [index, name] of families.entries()) {
    const familyId = await t.make.family({ orgId, name });
    const kind = index % 2 === 0 ? 'attorney' : 'neutral';
    const endsAt = index === 2 ? new Date(Date.now() + 9_000_000_000) : null;
    const grant = await t.make.grant({ professional, familyId, kind, endsAt });
    if (index % 3 === 0) made.push({ grantId: grant.id, seatId: await t.make.seat({ orgId, grant }) });
  }
  await t.make.grant({ professional, endsAt: new Date(), endReason: 'moved' });
  const [first, second] = made;
  await t.owner.pool.query(
    `update seat set ended_at = now(), end_reason = 'ended_by_organization' where organization_id = $1 and id = $2`,
    [orgId, second?.seatId],
  );
  return first ?? { grantId: '', seatId: '' };
}

/** Ended access whose event one webhook acknowledged, one rejected and one may have; the others wait. */
export async function endOne(t: ConsoleInstallation, ada: Enrolled): Promise<string> {
  const { orgId } = ada;
  const query = async (text: string, values: unknown[]) => (await t.owner.pool.query(text, values)).rows;
  const count = async () =>
    (await query(`select from webhook where organization_id = $1 and number > 0`, [orgId])).length;
  for (const description of ['Case management', '', 'Intake', 'Überlang'.repeat(30)])
    if ((await count()) < 4) await insertWebhook(t, ada, { description });
  const professional = await t.make.member({ orgId, name: 'Bo Lindqvist', roleKey: 'member' });
  const grant = await t.make.grant({ professional, familyId: await t.make.family({ orgId, name: 'Rossi family' }) });
  await query(`update client_grant set status = 'ended', end_reason = 'ended', ends_at = now() where id = $1`, [
    grant.id,
  ]);
  const deliveries = await query(
    `select d.event_id as event, d.webhook_id as id from delivery d join event e on e.id = d.event_id
     where e.subject_id = $1 and e.type = 'client.ended' order by d.webhook_id`,
    [grant.id],
  );
  const results = [
    { state: 'delivered', attempt: { status: 200, timings: { total: 180 } } },
    { state: 'exhausted', attempt: { status: 500, endsSchedule: true } },
    { state: 'queued', attempt: { cause: 'lost' } },
  ];
  for (const [index, { state, attempt }] of results.entries()) {
    const { event: eventId, id } = deliveries[index] ?? {};
    await t.make.attempt({ webhook: { id, orgId }, eventId, ...attempt });
    await query(
      `update delivery set state = $2, run = 1, attempts = 1, due_at = case $2 when 'queued' then due_at end,
         settled_at = case when $2 <> 'queued' then now() end where webhook_id = $1 and event_id = $3`,
      [id, state, eventId],
    );
  }
  return `/o/${orgId}/clients/${grant.id}`;
}

const path =
  (rest: string) =>
  async (t: ConsoleInstallation, ada: Enrolled): Promise<string> => {
    const { grantId, seatId } = await getClients(t, ada);
    return `/o/${ada.orgId}/clients${rest.replace('GRANT', grantId).replace('SEAT', seatId)}`;
  };

/** Clients and seats. */
export const pages: readonly JudgedPage[] = [
  { route: 'listClients', picture: 'clients-none', path: (_t, ada) => `/o/${ada.orgId}/clients?q=nobody` },
  { route: 'listSeats', picture: 'seats-over-none', path: (_t, ada) => `/o/${ada.orgId}/clients/seats?state=ended` },
  { route: 'listClients', picture: 'clients', path: path('?state=all') },
  { route: 'showClient', picture: 'client', path: path('/GRANT') },
  { route: 'showReceipt', picture: 'receipt', path: async (t, ada) => `${await endOne(t, ada)}/receipt` },
  { route: 'showReceipt', picture: 'receipt-none', path: path('/GRANT/receipt') },
  { route: 'showEndGrant', picture: 'client-end', path: path('/GRANT/end') },
  { route: 'showMoveGrant', picture: 'client-move', path: path('/GRANT/move') },
  { route: 'listSeats', picture: 'seats', path: path('/seats') },
  { route: 'listSeats', picture: 'seats-over', path: path('/seats?state=ended') },
  { route: 'showAssignSeat', picture: 'seat-give', path: path('/seats/assign') },
  { route: 'confirmAssignSeat', picture: 'seat-confirm', path: path('/GRANT/seat') },
  { route: 'showEndSeat', picture: 'seat-end', path: path('/seats/SEAT/end') },
];
