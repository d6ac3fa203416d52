import type { FilledForm } from './filled-form.ts';
import { headerOfScene, type Scene } from './scene.ts';

const needsReceiver = 'needs a worker and a receiver: webhooks.test.ts';
const fields = () => ({ url: 'https://hooks.example.com/new', eventTypes: ['seat.given'], description: 'Billing' });
const ofPaused = ({ pausedWebhook }: Scene) => ({ webhookId: pausedWebhook.id });

const failedKey = ({ webhook, failedEventId }: Scene) => `${webhook.id}.${failedEventId}`;

/** Forms of webhooks and their deliveries. */
export const webhookForms: Readonly<Record<string, FilledForm>> = {
  createWebhook: { fields },
  editWebhook: { fields: () => ({ ...fields(), removeHeaders: 'on' }) },
  setWebhookHeader: { fields: () => ({ name: 'X-Api-Key', value: 'of-the-gateway' }) },
  removeWebhookHeader: {
    page: ({ orgId, webhook }) => `/o/${orgId}/webhooks/${webhook.id}/headers`,
    fields: () => ({ name: headerOfScene.name }),
  },
  rotateSecret: { fields: () => ({ overlapHours: '24' }) },
  testWebhook: { fields: () => ({ type: 'client.started' }), notAlone: needsReceiver },
  verifyWebhook: { notAlone: needsReceiver },
  pauseWebhook: {},
  resumeWebhook: { params: ofPaused, fields: () => ({ withoutProbe: 'on' }) },
  deleteWebhook: {},

  sendDeliveryAgain: { fields: () => ({ how: 'redeliver' }) },
  cancelDelivery: { params: ({ waitingEventId }) => ({ eventId: waitingEventId }) },
  redeliver: {
    fields: () => ({ what: 'failed', hours: '24' }),
    notAlone: 'a webhook has one redelivery at a time, and this one has one: deliveries.test.ts',
  },
  redeliverSelected: {
    page: (scene) => `/o/${scene.orgId}/deliveries/redeliver?delivery=${failedKey(scene)}`,
    fields: (scene) => ({ delivery: [failedKey(scene)] }),
  },
  cancelRedelivery: {},
};
