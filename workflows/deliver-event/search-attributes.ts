import { defineSearchAttributeKey } from '@temporalio/common';

/**
 * Operators list deliveries in Temporal by these search attributes, all of type Keyword. They are
 * set at the start and never change: PostgreSQL knows a delivery's state, and Temporal lists its
 * workflows by `ExecutionStatus`.
 */
export const organizationAttribute = defineSearchAttributeKey('OrgApiOrganization', 'KEYWORD');
export const webhookAttribute = defineSearchAttributeKey('OrgApiWebhook', 'KEYWORD');
export const eventAttribute = defineSearchAttributeKey('OrgApiEvent', 'KEYWORD');
export const eventTypeAttribute = defineSearchAttributeKey('OrgApiEventType', 'KEYWORD');

/** All of them, as a namespace has to know them. */
export const deliveryAttributes = [
  organizationAttribute,
  webhookAttribute,
  eventAttribute,
  eventTypeAttribute,
] as const;
