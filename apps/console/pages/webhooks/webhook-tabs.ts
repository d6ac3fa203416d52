import type { Html } from '#runtime/pages/html.ts';
import { type Tab, tabs } from '../../components/tabs.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { webhookPath } from './find-webhook.ts';

const pages = [
  { key: 'health', label: 'Health', path: '' },
  { key: 'deliveries', label: 'Deliveries', path: '/deliveries' },
  { key: 'signatures', label: 'Signatures', path: '?tab=signatures' },
  { key: 'settings', label: 'Settings', path: '?tab=settings' },
] as const;

type WebhookTab = (typeof pages)[number]['key'];

export const webhookTabs = (visit: MemberVisit, here: WebhookTab): Html =>
  tabs(
    'Webhook',
    pages.map(({ key, label, path }): Tab => ({ label, href: webhookPath(visit, path), isHere: key === here })),
  );
