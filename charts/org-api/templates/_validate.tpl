{{/*
Checks that the JSON schema cannot express: values that are missing or contradict each other.
Returns all problems at once, a line each, with what to do.
*/}}
{{- define "org-api.problems" -}}
{{- $values := .Values -}}
{{- if not $values.image.repository }}
- image.repository is empty: name the image of org-api in your registry
{{- end }}
{{- range $code := list "us" "ca" }}
{{- if not (get $values.baseUrls $code) }}
- baseUrls.{{ $code }} is empty: give the public URLs of both regions, because a caller with a key of the
{{- " other region gets that region's URL" }}
{{- end }}
{{- end }}
{{- range $name := list "address" "namespace" }}
{{- if not (get $values.temporal $name) }}
- temporal.{{ $name }} is empty: workers deliver through this region's own namespace of Temporal
{{- end }}
{{- end }}
{{- if not (or $values.temporal.tls.enabled (has "temporal" $values.allowPlaintext)) }}
- temporal.tls.enabled is false: pods do not use Temporal without TLS, so enable TLS, or add temporal to
{{- " allowPlaintext" }}
{{- end }}
{{- range $name := list "temporalCa" "temporalCertificate" "temporalCertificateKey" "temporalApiKey" }}
{{- if and (get $values.secrets $name).key (not $values.temporal.tls.enabled) }}
- secrets.{{ $name }}.key is set without temporal.tls.enabled: the connection would be in plain text, so enable TLS
{{- " or empty it" }}
{{- end }}
{{- end }}
{{- if and $values.temporal.tls.serverName (not $values.temporal.tls.enabled) }}
- temporal.tls.serverName is set without temporal.tls.enabled: enable TLS or empty it
{{- end }}
{{- $names := list "temporalCertificate" "temporalCertificateKey" }}
{{- range $one := $names }}
{{- $other := without $names $one | first }}
{{- if and (get $values.secrets $one).key (not (get $values.secrets $other).key) }}
- secrets.{{ $other }}.key is empty beside secrets.{{ $one }}.key: mutual TLS needs both the certificate and its
{{- " private key" }}
{{- end }}
{{- end }}
{{- $components := append (include "org-api.components" . | splitList " ") "migrations" }}
{{- $reported := dict }}
{{- range $component := $components }}
{{- if or (ne $component "migrations") $values.migrations.enabled }}
{{- range $setting, $secret := include "org-api.secrets" (dict "root" $ "component" $component) | fromYaml }}
{{- if and (not $secret.name) (not (hasKey $reported $setting)) }}
{{- $_ := set $reported $setting true }}
- no Secret holds {{ $setting }}, which {{ $component }} needs: name one in secrets.existingSecret, or in the
{{- " setting's section of secrets" }}
{{- end }}
{{- if not $secret.key }}
- the key of the Secret that holds {{ $setting }} is empty: {{ $component }} needs it
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $component := include "org-api.components" . | splitList " " }}
{{- $app := get $values $component }}
{{- if and $app.autoscaling.enabled (not (kindIs "invalid" $app.replicas)) }}
- {{ $component }}.replicas is set beside {{ $component }}.autoscaling.enabled: the autoscaler owns the number of
{{- printf " pods, so remove %s.replicas or disable the autoscaler" $component }}
{{- end }}
{{- if and $app.autoscaling.enabled (gt (int $app.autoscaling.minReplicas) (int $app.autoscaling.maxReplicas)) }}
- {{ $component }}.autoscaling.minReplicas is above maxReplicas: swap them
{{- end }}
{{- $none := list "0" "0%" }}
{{- if and (has (toString $app.strategy.maxSurge) $none) (has (toString $app.strategy.maxUnavailable) $none) }}
- {{ $component }}.strategy allows neither a pod more nor a pod less: raise maxSurge, so that a rollout can begin
{{- end }}
{{- end }}
{{- range $component := $components }}
{{- $app := get $values $component }}
{{- $of := dict "root" $ "component" $component }}
{{- $set := merge (include "org-api.settings" $of | fromYaml) (include "org-api.secrets" $of | fromYaml) }}
{{- if or (ne $component "migrations") $values.migrations.enabled }}
{{- include "org-api.podProblems" (merge (dict "own" $app "set" $set) $of) }}
{{- end }}
{{- end }}
{{- range $component := include "org-api.httpComponents" . | splitList " " }}
{{- $app := get $values $component }}
{{- if and $app.service.externalTrafficPolicy (eq $app.service.type "ClusterIP") }}
- {{ $component }}.service.externalTrafficPolicy is set for a ClusterIP, which has no external traffic: empty it, or
{{- printf " choose another %s.service.type" $component }}
{{- end }}
{{- if and $app.service.loadBalancerSourceRanges (ne $app.service.type "LoadBalancer") }}
- {{ $component }}.service.loadBalancerSourceRanges is set without a LoadBalancer and would have no effect: empty it,
{{- printf " or set %s.service.type to LoadBalancer" $component }}
{{- end }}
{{- if and $app.httpRoute.enabled $app.httpRoute.extraBackendRefs (kindIs "invalid" $app.httpRoute.weight) }}
- {{ $component }}.httpRoute.weight is null beside extraBackendRefs: set the weight of this release's pods
{{- end }}
{{- if and (or $app.httpRoute.enabled $app.ingress.enabled) (not $app.trustedProxies) }}
- {{ $component }}.trustedProxies is empty beside {{ $app.httpRoute.enabled | ternary "httpRoute" "ingress" }}.enabled:
{{- " every caller would share the gateway's address, so failed sign-ins and keys of one would block all;" }}
{{- " give the addresses of the gateway's pods or the load balancer" }}
{{- end }}
{{- if and $app.httpRoute.enabled (not $app.httpRoute.parentRefs) }}
- {{ $component }}.httpRoute.parentRefs is empty: name the Gateway that {{ $component }}'s HTTPRoute attaches to
{{- end }}
{{- end }}
{{- if and $values.console.enabled (not $values.console.url) }}
- console.url is empty: give the address that people open, for example https://console.us.example.com
{{- end }}
{{- if and $values.secrets.mailUrl.key (not $values.mail.from) }}
- secrets.mailUrl.key is set without mail.from: mails need a sender, for example Name <no-reply@example.com>
{{- end }}
{{- if and $values.mail.from (not $values.secrets.mailUrl.key) }}
- mail.from is set without secrets.mailUrl.key: name the key of the mail server's URL, or empty it
{{- end }}
{{- if and $values.secrets.mailCa.key (not $values.secrets.mailUrl.key) }}
- secrets.mailCa.key is set without secrets.mailUrl.key: name the key of the mail server's URL, or empty it
{{- end }}
{{- if $values.networkPolicy.enabled }}
{{- $lists := list "http.from" "database.to" "redis.to" "temporal.to" }}
{{- if $values.otlp.endpoint }}{{ $lists = append $lists "otlp.to" }}{{ end }}
{{- if include "org-api.sendsMail" . }}{{ $lists = append $lists "mail.to" }}{{ end }}
{{- include "org-api.peerProblems" (dict "policy" $values.networkPolicy "lists" $lists) }}
{{- range $values.networkPolicy.webhooks.except }}
{{- $of6 := contains ":" . }}
{{- if not (regexMatch ($of6 | ternary `^[23][0-9A-Fa-f]{3}:.*/([4-9]|\d{2,3})$` `/[1-9]\d?$`) .) }}
- networkPolicy.webhooks.except has {{ . }}, which is no smaller block of {{ $of6 | ternary "2000::/3" "0.0.0.0/0" }}:
{{- " webhooks reach nothing outside that, and Kubernetes would reject the policy, so remove it" }}
{{- end }}
{{- end }}
{{- end }}
{{- $rules := $values.monitoring.rules }}
{{- if and $values.monitoring.enabled $rules.enabled (not $rules.runbookBaseUrl) }}
- monitoring.rules.runbookBaseUrl is empty: give the URL of charts/org-api/runbooks, for example
{{- " https://git.example.com/org-api/blob/main/charts/org-api/runbooks" }}
{{- end }}
{{- $keys := dict
  "operatorDatabaseUrl" "OPERATOR_DATABASE_URL"
  "webhookSecretKeys" "WEBHOOK_SECRET_KEYS"
  "temporalCa" "ca.crt"
  "temporalCertificate" "tls.crt"
  "temporalCertificateKey" "tls.key"
  "temporalApiKey" "TEMPORAL_API_KEY"
}}
{{- range $name, $key := $keys }}
{{- $given := (get $values.secrets $name).key }}
{{- if and $values.operator.region.create $given (ne $given $key) }}
- secrets.{{ $name }}.key is {{ $given }} beside operator.region.create: the operator reads the key {{ $key }} only, so
{{- printf " store the value under %s" $key }}
{{- end }}
{{- end }}
{{- if and $values.operator.region.create (not $values.secrets.operatorDatabaseUrl.key) }}
- secrets.operatorDatabaseUrl.key is empty beside operator.region.create: the operator needs a separate login
{{- end }}
{{- if and $values.probe.enabled (not $values.probe.clusterIP) }}
- probe.clusterIP is empty: choose a free address of the cluster's Service range, which stays the probe's
{{- end }}
{{- end -}}
