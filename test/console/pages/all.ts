import { pages as auditLog } from './audit-log.ts';
import { pages as clients } from './clients.ts';
import { pages as deliveries } from './deliveries.ts';
import { pages as frame } from './frame.ts';
import { pages as keys } from './keys.ts';
import { pages as members } from './members.ts';
import { pages as provider } from './provider.ts';
import { pages as webhooks } from './webhooks.ts';

/** Every page that is judged. */
export const pages = [...frame, ...keys, ...webhooks, ...deliveries, ...members, ...clients, ...auditLog, ...provider];

/** The routes of pages with a part that updates. */
export const autoRefreshRoutes = [
  'listAllDeliveries',
  'listDeliveries',
  'showDelivery',
  'showRedelivery',
  'showWebhook',
];
