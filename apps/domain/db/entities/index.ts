import { ClientGrant, Family, FamilyDay, Seat, SeatPlan, Subscription } from './client.ts';
import {
  ConsoleSession,
  Enrolment,
  FactorChallenge,
  FormUse,
  KnownBrowser,
  PasskeyChallenge,
  RecoveryCode,
  SecondFactor,
  SignIn,
  SignInAttempt,
  SignInConfirmation,
} from './identity.ts';
import { Activity, ApiKey, RetentionFloor } from './key.ts';
import { LedgerCount, LedgerDay } from './ledger.ts';
import { Membership, MembershipRole, Organization, Person, Role } from './organization.ts';
import { Redelivery } from './redelivery.ts';
import { Referral, ReferralCode, ReferralInvoice } from './referral.ts';
import { ConcurrencySlot, Delivery, DeliveryAttempt, Event, Webhook, WebhookSecret } from './webhook.ts';
import { WorkflowSweep } from './workflow-sweep.ts';

/** Every entity; a test compares each with its table. */
export const entities = [
  Organization,
  Person,
  Membership,
  Role,
  MembershipRole,
  Family,
  ClientGrant,
  SeatPlan,
  Subscription,
  Seat,
  FamilyDay,
  ReferralCode,
  Referral,
  ReferralInvoice,
  ApiKey,
  Activity,
  RetentionFloor,
  Webhook,
  WebhookSecret,
  Event,
  Delivery,
  DeliveryAttempt,
  ConcurrencySlot,
  LedgerDay,
  LedgerCount,
  SignIn,
  SignInConfirmation,
  SecondFactor,
  RecoveryCode,
  ConsoleSession,
  FactorChallenge,
  PasskeyChallenge,
  KnownBrowser,
  Enrolment,
  SignInAttempt,
  FormUse,
  Redelivery,
  WorkflowSweep,
];
