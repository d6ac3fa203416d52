import type { FilledForm } from './filled-form.ts';
import type { Scene } from './scene.ts';

const needsReceiver = 'needs a worker and a receiver: webhooks.test.ts';
const fields = () => ({ url: 'https://hooks.example.com/new', eventTypes: ['seat.given'], description: 'Billing' });
const ofPaused = ({ pausedWebhook }: Scene) => ({ webhookId: pausedWebhook.id });

/** Forms of webhooks and their deliveries. */
export const webhookForms: Readonly<Record<string, FilledForm>> = {
  createWebhook: { fields },
  editWebhook: { fields },
  rotateSecret: { fields: () => ({ overlapHours: '24' }) },
  testWebhook: { fields: () => ({ type: 'client.started' }), notAlone: needsReceiver },
  verifyWebhook: { notAlone: needsReceiver },
  pauseWebhook: {},
  resumeWebhook: { params: ofPaused, fields: () => ({ withoutProbe: 'on' }) },
  deleteWebhook: {},

  sendDeliveryAgain: { fields: () => ({ how: 'redeliver' }) },
  cancelDelivery: { params: ({ waitingEventId }) => ({ eventId: waitingEventId }) },
  redeliver: {
    page: ({ orgId, webhook, failedEventId }) =>
      `/o/${orgId}/webhooks/${webhook.id}/redeliver/review?what=selected&event=${failedEventId}`,
    fields: ({ failedEventId }) => ({ what: 'selected', event: [failedEventId] }),
  },
  cancelRedelivery: {},
};
