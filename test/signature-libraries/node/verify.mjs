/**
 * Three ways to verify a delivery: copy the one for your library. Each throws when the delivery is
 * not genuine.
 */
import { Webhook as StandardWebhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { Webhook as SvixWebhook } from 'svix';

/**
 * @param {Buffer} body the bytes as they came, before any parsing
 * @param {Record<string, string>} headers by lower-case name
 * @param {string} secret the whole of it, from `whsec_` on
 */
export function verifyWithStandardWebhooks(body, headers, secret) {
  new StandardWebhook(secret).verify(body, headers);
}

export function verifyWithSvix(body, headers, secret) {
  new SvixWebhook(secret).verify(body, headers);
}

export function verifyWithStripe(body, headers, secret) {
  Stripe.webhooks.constructEvent(body, headers['service-signature'] ?? '', secret);
}
