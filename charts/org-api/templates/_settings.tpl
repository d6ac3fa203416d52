{{/* What each app reads from its environment; docs/configuration.md lists every setting. */}}

{{/*
Settings of a component that are not secret, as YAML {NAME: value}. Empty ones are omitted, so the
app's default applies. Takes {root, component}.
*/}}
{{- define "org-api.settings" -}}
{{- $values := .root.Values -}}
{{- $app := get $values .component -}}
ALLOW_PLAINTEXT: {{ join "," $values.allowPlaintext | quote }}
{{- if eq .component "api" }}
REGION: {{ $values.region | quote }}
BASE_URL_US: {{ $values.baseUrls.us | quote }}
BASE_URL_CA: {{ $values.baseUrls.ca | quote }}
{{- include "org-api.serverSettings" $app }}
RESPONSE_MEMORY_MIB: {{ $app.responseMemoryMiB | int | quote }}
LOG_LEVEL: {{ $app.logLevel | quote }}
OTEL_EXPORTER_OTLP_ENDPOINT: {{ $values.otlp.endpoint | quote }}
{{- else if eq .component "worker" }}
REGION: {{ $values.region | quote }}
{{- include "org-api.temporalSettings" .root }}
WEBHOOK_ALLOW: {{ join "," $app.webhookAllow | quote }}
DELIVERY_SCHEDULE: {{ $app.deliverySchedule | quote }}
SUSPEND_AFTER: {{ $app.suspendAfter | quote }}
REQUEUE_AFTER: {{ $app.requeueAfter | quote }}
READY_AFTER: {{ $app.readyAfter | quote }}
DELIVERY_SLOTS: {{ $app.deliverySlots | int | quote }}
AUDIT_LOG_RETENTION: {{ $app.auditLogRetention | quote }}
DELIVERY_RETENTION: {{ $app.deliveryRetention | quote }}
AUDIT_LOG_STREAM: {{ $values.otlp.auditLog | quote }}
{{- if include "org-api.sendsMail" .root }}
MAIL_FROM: {{ $values.mail.from | quote }}
CONSOLE_URL: {{ $values.console.url | quote }}
{{- end }}
DATABASE_POOL_MAX: {{ $app.databasePoolMax | int | quote }}
LOG_LEVEL: {{ $app.logLevel | quote }}
OTEL_EXPORTER_OTLP_ENDPOINT: {{ $values.otlp.endpoint | quote }}
{{- if $values.probe.enabled }}
PROBE_WEBHOOK_ID: {{ $values.probe.webhookId | quote }}
PROBE_WEBHOOK_ALLOW: {{ $values.probe.clusterIP | quote }}
{{- end }}
{{- else if eq .component "console" }}
REGION: {{ $values.region | quote }}
CONSOLE_URL: {{ $app.url | quote }}
{{- if include "org-api.sendsMail" .root }}
MAIL_FROM: {{ $values.mail.from | quote }}
{{- end }}
API_URL: {{ get $values.baseUrls $values.region | quote }}
PORT: "8080"
WEBHOOK_ALLOW: {{ join "," $values.worker.webhookAllow | quote }}
{{- include "org-api.temporalSettings" .root }}
{{- include "org-api.serverSettings" $app }}
LOG_LEVEL: {{ $app.logLevel | quote }}
{{- else if eq .component "migrations" }}
AUDIT_LOG_RETENTION_FLOOR: {{ $values.migrations.auditLogRetentionFloor | quote }}
{{- else if eq .component "probe" }}
REGION: {{ $values.region | quote }}
API_URL: {{ printf "http://%s-api:%d" (include "org-api.fullname" .root) (int $values.api.service.port) | quote }}
{{- $trusted := concat ($values.api.trustedProxies | default list) ($values.console.trustedProxies | default list) }}
TRUSTED_PROXIES: {{ $trusted | uniq | join "," | quote }}
{{- include "org-api.temporalSettings" .root }}
{{- end }}
{{- end -}}

{{/* Not empty where workers send mail: people get it who use the console. Takes the root. */}}
{{- define "org-api.sendsMail" -}}
{{- if and .Values.secrets.mailUrl.key .Values.console.enabled }}true{{ end -}}
{{- end -}}

{{/* What every app reads that serves HTTP. Takes the app's section of the values. */}}
{{- define "org-api.serverSettings" }}
{{- $app := . }}
TRUSTED_PROXIES: {{ join "," $app.trustedProxies | quote }}
DATABASE_POOL_MAX: {{ $app.databasePoolMax | int | quote }}
DRAIN_DELAY_MS: {{ $app.drainDelayMs | int | quote }}
MAX_CONNECTIONS: {{ $app.maxConnections | int | quote }}
{{- end -}}

{{/* What every app reads that speaks to Temporal. Takes the root. */}}
{{- define "org-api.temporalSettings" }}
TEMPORAL_ADDRESS: {{ .Values.temporal.address | quote }}
TEMPORAL_NAMESPACE: {{ .Values.temporal.namespace | quote }}
TEMPORAL_TLS: {{ .Values.temporal.tls.enabled | ternary "true" "" | quote }}
TEMPORAL_TLS_SERVER_NAME: {{ .Values.temporal.tls.serverName | quote }}
{{- end -}}

{{/*
Secrets of Temporal, as YAML {SETTING: {existingSecret, key}}. All are optional: only those with a
key are listed. Takes the section `secrets`.
*/}}
{{- define "org-api.temporalSecrets" -}}
{{- $secrets := dict
  "TEMPORAL_TLS_CA" .temporalCa
  "TEMPORAL_TLS_CERT" .temporalCertificate
  "TEMPORAL_TLS_KEY" .temporalCertificateKey
  "TEMPORAL_API_KEY" .temporalApiKey
}}
{{- range $setting, $one := $secrets }}
{{- if $one.key }}
{{ $setting }}:
  existingSecret: {{ $one.existingSecret | quote }}
  key: {{ $one.key | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
Secrets of a component, as YAML {SETTING: {name, key}}: the Secret and its key. Least privilege: only
those that the app reads. Takes {root, component}.
*/}}
{{- define "org-api.secrets" -}}
{{- $secrets := .root.Values.secrets -}}
{{- $of := dict -}}
{{- if eq .component "api" -}}
{{- $of = dict
  "API_DATABASE_URL" $secrets.apiDatabaseUrl
  "REDIS_URL" $secrets.redisUrl
  "KEY_PEPPERS" $secrets.keyPeppers
  "KEY_TAG_SECRETS" $secrets.keyTagSecrets
-}}
{{- else if eq .component "worker" -}}
{{- $of = dict
  "WORKER_DATABASE_URL" $secrets.workerDatabaseUrl
  "WEBHOOK_SECRET_KEYS" $secrets.webhookSecretKeys
-}}
{{- if include "org-api.sendsMail" .root -}}
{{- $_ := set $of "MAIL_URL" $secrets.mailUrl -}}
{{- if $secrets.mailCa.key -}}
{{- $_ := set $of "MAIL_CA" $secrets.mailCa -}}
{{- end -}}
{{- end -}}
{{- else if eq .component "console" -}}
{{- $of = dict
  "CONSOLE_DATABASE_URL" $secrets.consoleDatabaseUrl
  "KEY_PEPPERS" $secrets.keyPeppers
  "KEY_TAG_SECRETS" $secrets.keyTagSecrets
  "WEBHOOK_SECRET_KEYS" $secrets.webhookSecretKeys
-}}
{{- else if eq .component "migrations" -}}
{{- $of = dict
  "DATABASE_URL" $secrets.ownerDatabaseUrl
  "API_DATABASE_URL" $secrets.apiDatabaseUrl
  "WORKER_DATABASE_URL" $secrets.workerDatabaseUrl
-}}
{{- if .root.Values.console.enabled -}}
{{- $_ := set $of "CONSOLE_DATABASE_URL" $secrets.consoleDatabaseUrl -}}
{{- end -}}
{{- if $secrets.platformDatabaseUrl.key -}}
{{- $_ := set $of "PLATFORM_DATABASE_URL" $secrets.platformDatabaseUrl -}}
{{- end -}}
{{- if $secrets.operatorDatabaseUrl.key -}}
{{- $_ := set $of "OPERATOR_DATABASE_URL" $secrets.operatorDatabaseUrl -}}
{{- end -}}
{{- else if eq .component "probe" -}}
{{- $own := default (printf "%s-probe" (include "org-api.fullname" .root)) .root.Values.probe.existingSecret -}}
{{- $keys := dict
  "PROBE_ORGANIZATION_ID" "organizationId"
  "PROBE_KEY" "key"
  "PROBE_WEBHOOK_ID" "webhookId"
  "PROBE_WEBHOOK_SECRET" "webhookSecret"
-}}
{{- range $name, $key := $keys -}}
{{- $_ := set $of $name (dict "existingSecret" $own "key" $key) -}}
{{- end -}}
{{- $_ := set $of "API_DATABASE_URL" $secrets.apiDatabaseUrl -}}
{{- $_ := set $of "WORKER_DATABASE_URL" $secrets.workerDatabaseUrl -}}
{{- $_ := set $of "REDIS_URL" $secrets.redisUrl -}}
{{- if .root.Values.console.enabled -}}
{{- $_ := set $of "CONSOLE_DATABASE_URL" $secrets.consoleDatabaseUrl -}}
{{- end -}}
{{- end -}}
{{- if has .component (list "worker" "console" "probe") -}}
{{- $of = merge $of (include "org-api.temporalSecrets" $secrets | fromYaml) -}}
{{- end -}}
{{- range $name, $one := $of }}
{{ $name }}:
  name: {{ default $secrets.existingSecret $one.existingSecret | quote }}
  key: {{ $one.key | quote }}
{{- end -}}
{{- end -}}
