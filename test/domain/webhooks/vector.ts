/** A complete delivery as a test vector; the signatures were computed by other programs. */
export const vector = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: '3b1f8a52-9c0e-4d57-8a41-6f0f2f1c7e10',
  timestampSeconds: 1_767_225_600,
  body: '{"id":"3b1f8a52-9c0e-4d57-8a41-6f0f2f1c7e10","type":"client.started","createdAt":"2026-01-01T00:00:00.000Z","organization":{"id":"0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d"},"data":{"grantId":"7f3c2f0e-6a1b-4d0e-8f57-2b9a4c1d5e6f","kind":"attorney"}}',
  service: 'v1=0acf07307d6859d8ae86752f722a165b3b4e65f29d0707a427a3e03b0a034fe2',
  standard: 'v1,8IlTb1gstICpTK/w31TIlX2dS0wWJt3+uOAVxuWR4IQ=',
} as const;

/** Another valid secret. */
export const otherSecret = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX';
