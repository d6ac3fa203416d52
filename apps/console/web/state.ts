import type { ErrorCode } from '#domain/contract/errors.ts';
import type { Visit } from './visit.ts';

/** What the console's middlewares tell each other of one request. */
export interface ConsoleState {
  requestId: string;
  /** The route's name, or `none`. */
  operation: string;
  code?: ErrorCode | FormCode;
  organizationId?: string;
  personId?: string;
  /** The form that was sent, once it was read. */
  form?: URLSearchParams;
  /** Never logged: for the frame of a page that says why there is no page. */
  visit?: Visit;
}

/** Why a form was not carried out, for logs; the person is told in sentences. */
export type FormCode =
  | 'form_refused'
  | 'permission_needed'
  | 'sign_in_unconfirmed'
  | 'form_of_another_site'
  | 'form_out_of_date'
  | 'form_sent_twice'
  | 'too_many_attempts'
  | 'busy'
  | 'sign_in_needed'
  | 'step_up_needed';
