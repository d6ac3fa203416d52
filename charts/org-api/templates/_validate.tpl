{{/* What the JSON schema cannot say: values that are missing or contradict each other. All problems are told at once, each with its remedy. */}}
{{- define "org-api.problems" -}}
{{- $values := .Values -}}
{{- if not $values.image.repository }}
- image.repository is empty: name the image of org-api in your registry
{{- end }}
{{- range $code := list "us" "ca" }}
{{- if not (get $values.baseUrls $code) }}
- baseUrls.{{ $code }} is empty: callers with a key of the other region are told where it belongs, so give the public URLs of both regions
{{- end }}
{{- end }}
{{- range $name := list "address" "namespace" }}
{{- if not (get $values.temporal $name) }}
- temporal.{{ $name }} is empty: workers deliver through this region's own namespace of Temporal
{{- end }}
{{- end }}
{{- $components := append (include "org-api.components" . | splitList " ") "migrations" }}
{{- $told := dict }}
{{- range $component := $components }}
{{- if or (ne $component "migrations") $values.migrations.enabled }}
{{- range $setting, $secret := include "org-api.secrets" (dict "root" $ "component" $component) | fromYaml }}
{{- if and (not $secret.name) (not (hasKey $told $setting)) }}
{{- $_ := set $told $setting true }}
- no Secret holds {{ $setting }}, which {{ $component }} needs: name one in secrets.existingSecret, or in the setting's own section there
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
- {{ $component }}.replicas is set beside {{ $component }}.autoscaling.enabled: the autoscaler owns the number of pods, so remove {{ $component }}.replicas or switch the autoscaler off
{{- end }}
{{- if and $app.autoscaling.enabled (gt (int $app.autoscaling.minReplicas) (int $app.autoscaling.maxReplicas)) }}
- {{ $component }}.autoscaling.minReplicas is above maxReplicas: swap them
{{- end }}
{{- end }}
{{- range $component := $components }}
{{- $app := get $values $component }}
{{- $of := dict "root" $ "component" $component }}
{{- $set := merge (include "org-api.settings" $of | fromYaml) (include "org-api.secrets" $of | fromYaml) }}
{{- range $app.extraEnv }}
{{- if hasKey $set (trimSuffix "_FILE" .name) }}
- {{ $component }}.extraEnv sets {{ .name }}, which the chart sets itself: use its value instead
{{- end }}
{{- end }}
{{- end }}
{{- range $component := include "org-api.httpComponents" . | splitList " " }}
{{- $app := get $values $component }}
{{- if and $app.httpRoute.enabled (not $app.httpRoute.parentRefs) }}
- {{ $component }}.httpRoute.parentRefs is empty: name the Gateway that {{ $component }}'s HTTPRoute attaches to
{{- end }}
{{- end }}
{{- if and $values.console.enabled (not $values.console.url) }}
- console.url is empty: give the address that people open, for example https://console.us.example.com
{{- end }}
{{- if $values.networkPolicy.enabled }}
{{- $servers := list "database" "redis" "temporal" }}
{{- if $values.otlp.endpoint }}{{ $servers = append $servers "otlp" }}{{ end }}
{{- range $server := $servers }}
{{- if not (get $values.networkPolicy $server).to }}
- networkPolicy.{{ $server }}.to is empty: name the peers by ipBlock, namespaceSelector or podSelector, or nothing could reach them
{{- end }}
{{- end }}
{{- end }}
{{- if and $values.probe.enabled (not $values.probe.clusterIP) }}
- probe.clusterIP is empty: choose a free address of the cluster's Service range, which stays the probe's
{{- end }}
{{- end -}}
