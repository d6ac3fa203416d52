import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { startTestWorker } from '#test/worker.ts';
import { createDeliveryWorkflows } from '../../apps/worker/relay/delivery-workflows.ts';
import { openSearchAttributes } from '../../apps/worker/relay/search-attributes.ts';

const timeout = 90_000;
const patient = { timeout: 30_000, interval: 100 };

describe('deliveries in Temporal', () => {
  it('are listed by organization, webhook, event and event type', { timeout }, async () => {
    const { database, owner, make } = await setupDatabase();
    const receiver = await startReceiver();
    const professional = await make.member();
    const other = await make.member();
    const webhookAt = async (orgId: string, path: string) =>
      (await make.webhook({ orgId, url: `${receiver.url}${path}` })).id;
    const accepting = await webhookAt(professional.orgId, '/accepts');
    const failing = await webhookAt(professional.orgId, '/fails');
    await webhookAt(other.orgId, '/accepts');
    receiver.answer = (response, { path }) => {
      response.writeHead(path === '/fails' ? 500 : 200).end();
    };
    await startTestWorker(database, { DELIVERY_SCHEDULE: '1h' });
    await make.grant({ professional });
    await make.grant({ professional: other });
    const temporal = await openTestTemporal();
    const listed = async (query: string) => {
      const ids: string[] = [];
      for await (const { workflowId } of temporal.workflow.list({ query })) ids.push(workflowId);
      return ids.map((id) => id.split('/')[1]);
    };
    const ofOrganization = (more: string) => listed(`OrgApiOrganization = '${professional.orgId}' AND ${more}`);

    await vi.waitFor(async () => {
      expect(await ofOrganization(`ExecutionStatus = 'Completed'`)).toEqual([accepting]);
      expect(await ofOrganization(`ExecutionStatus = 'Running'`)).toEqual([failing]);
    }, patient);
    expect((await ofOrganization(`OrgApiEventType = 'client.started'`)).sort()).toEqual([accepting, failing].sort());
    expect(await ofOrganization(`OrgApiEventType = 'seat.given'`)).toEqual([]);
    expect(await listed(`OrgApiWebhook = '${failing}'`)).toEqual([failing]);
    const { rows } = await owner.pool.query<{ id: string }>(
      'select event_id as id from delivery where webhook_id = $1',
      [failing],
    );
    expect((await listed(`OrgApiEvent = '${rows[0]?.id}'`)).sort()).toEqual([accepting, failing].sort());
  });

  it('cost no further workflow task when they are delivered at once, which takes one', { timeout }, async () => {
    const { database, owner, make } = await setupDatabase();
    const receiver = await startReceiver();
    const professional = await make.member();
    const webhook = await make.webhook({ orgId: professional.orgId, url: receiver.url });
    await startTestWorker(database);
    await make.grant({ professional });
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patient);
    const { rows } = await owner.pool.query<{ id: string }>('select id from event');
    const handle = (await openTestTemporal()).workflow.getHandle(`delivery/${webhook.id}/${rows[0]?.id}`);
    expect(await handle.result()).toBe('delivered');
    const { events } = await handle.fetchHistory();
    const count = (key: 'workflowTaskCompletedEventAttributes' | 'upsertWorkflowSearchAttributesEventAttributes') =>
      (events ?? []).filter((event) => event[key]).length;
    expect(count('workflowTaskCompletedEventAttributes')).toBe(1);
    expect(count('upsertWorkflowSearchAttributesEventAttributes')).toBe(0);
    expect(events).toHaveLength(6);
  });
});

describe('a namespace without the search attributes', () => {
  let connection: Connection;
  beforeAll(async () => {
    connection = await Connection.connect({ address: inject('temporalAddress') });
  });
  afterAll(() => connection.close());

  async function makeNamespace(): Promise<Client> {
    const namespace = `org-api-test-${crypto.randomUUID()}`;
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    });
    const client = new Client({ connection, namespace });
    // Each node of the server learns of it within seconds.
    await vi.waitFor(() => client.workflow.count(), { timeout: 60_000, interval: 250 });
    return client;
  }
  const namesIn = async ({ options: { namespace } }: Client) => {
    const known = await connection.operatorService.listSearchAttributes({ namespace });
    return Object.keys(known.customAttributes ?? {}).sort();
  };
  const deliveryNames = ['OrgApiEvent', 'OrgApiEventType', 'OrgApiOrganization', 'OrgApiWebhook'];

  it('gets them from workers that start, also from two at once', { timeout }, async () => {
    const client = await makeNamespace();
    const problems: string[] = [];
    const open = () =>
      openSearchAttributes({
        client,
        namespace: client.options.namespace,
        onProblem: (problem) => problems.push(problem),
      });
    await Promise.all([open(), open()]);
    await vi.waitFor(async () => expect(await namesIn(client)).toEqual(deliveryNames), patient);
    await open();
    expect(problems).toEqual([]);
  });

  it('that refuses them gets the deliveries without them, and the log has the command', { timeout }, async () => {
    const client = await makeNamespace();
    const { namespace } = client.options;
    // A server has at most ten attributes of a type, and refuses more.
    const taken = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`Taken${index}`, 2]));
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: taken });
    const { database, make } = await setupDatabase();
    const receiver = await startReceiver();
    const professional = await make.member();
    await make.webhook({ orgId: professional.orgId, url: receiver.url });
    receiver.answer = (response) => void response.writeHead(receiver.received.length === 1 ? 500 : 200).end();
    const { logLines } = await startTestWorker(database, {
      TEMPORAL_NAMESPACE: namespace,
      DELIVERY_SCHEDULE: '200ms,1h',
    });

    await make.grant({ professional });

    await vi.waitFor(() => expect(receiver.received).toHaveLength(2), patient);
    const flags = deliveryNames.map((name) => `--name ${name} --type Keyword`);
    const line = logLines.find((text) => text.includes('temporal operator search-attribute create')) ?? '';
    for (const flag of [`--namespace ${namespace}`, ...flags]) expect(line).toContain(flag);
  });

  it('starts a delivery without them when it does not know them yet', { timeout }, async () => {
    const problems: string[] = [];
    const full = await openTestTemporal(); // it has the attributes, so they are assumed to exist
    const attributes = await openSearchAttributes({
      client: full,
      namespace: full.options.namespace,
      onProblem: (problem) => problems.push(problem),
    });
    const { namespace } = (await makeNamespace()).options;
    const native = await NativeConnection.connect({ address: inject('temporalAddress') });
    onTestFinished(() => native.close());
    const client = new Client({ connection: native, namespace });
    const { startWorkflow } = createDeliveryWorkflows({ client, delaysMs: [1_000], attributes });
    const ids = {
      organizationId: crypto.randomUUID(),
      webhookId: crypto.randomUUID(),
      eventId: crypto.randomUUID(),
      round: 1,
    };

    await startWorkflow({ ...ids, slow: false, type: 'client.started', begunAtMs: Date.now() });

    const handle = client.workflow.getHandle(`delivery/${ids.webhookId}/${ids.eventId}`);
    expect((await handle.describe()).typedSearchAttributes.getAll()).toEqual([]);
    expect(problems).toEqual([expect.stringContaining('without them for a minute')]);
  });
});
