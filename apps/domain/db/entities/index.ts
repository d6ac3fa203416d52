import { ClientGrant, Seat } from './client.ts';
import {
  ConsoleSession,
  Enrolment,
  FactorChallenge,
  KnownBrowser,
  PasskeyChallenge,
  RecoveryCode,
  SecondFactor,
  SignIn,
} from './identity.ts';
import { ApiKey } from './key.ts';
import { Membership, MembershipRole, Organization, Person, Role } from './organization.ts';
import { Redelivery } from './redelivery.ts';
import { Webhook, WebhookSecret } from './webhook.ts';

/**
 * Every entity: the rows that repositories load and change (ADR 0103). A test compares each with
 * its table. Tables that only statements use have none.
 */
export const entities = [
  Organization,
  Person,
  Membership,
  Role,
  MembershipRole,
  ClientGrant,
  Seat,
  ApiKey,
  Webhook,
  WebhookSecret,
  Redelivery,
  SignIn,
  SecondFactor,
  RecoveryCode,
  ConsoleSession,
  FactorChallenge,
  PasskeyChallenge,
  KnownBrowser,
  Enrolment,
];
