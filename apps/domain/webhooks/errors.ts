import { DomainError } from '../contract/domain-error.ts';

/** Why a webhook or one of its deliveries was not changed or shown. */
type WebhookErrorReason =
  | 'may_not_manage_webhooks'
  | 'no_such_organization'
  | 'no_such_webhook'
  | 'webhook_deleted'
  | 'webhook_managed'
  | 'webhook_not_managed'
  | 'webhook_not_active'
  | 'url_invalid'
  | 'url_in_use'
  | 'no_event_types'
  | 'unknown_event_type'
  | 'description_too_long'
  | 'posts_per_second_out_of_range'
  | 'header_name_invalid'
  | 'header_reserved'
  | 'header_value_invalid'
  | 'header_named_twice'
  | 'no_such_header'
  | 'too_many_headers'
  | 'headers_too_long'
  | 'headers_would_move'
  | 'nothing_to_change'
  | 'too_many_webhooks'
  | 'overlap_out_of_range'
  | 'too_many_secrets'
  | 'secret_malformed'
  | 'too_many_tests'
  | 'no_such_delivery'
  | 'delivery_cancelled'
  | 'delivery_settled'
  | 'event_too_old'
  | 'empty_range'
  | 'no_such_redelivery'
  | 'redelivery_under_way';

/**
 * An error: `reason` for programs, `message` a sentence for the caller. Neither holds a secret.
 */
export class WebhookError extends DomainError<WebhookErrorReason> {}
