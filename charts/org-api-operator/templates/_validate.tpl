{{/* Checks that the JSON schema cannot express. Returns all problems at once, a line each, with what to do. */}}
{{- define "org-api-operator.problems" -}}
{{- $values := .Values -}}
{{- if not $values.image.repository }}
- image.repository is empty: name the image of org-api in your registry
{{- end }}
{{- if $values.networkPolicy.enabled }}
{{- $lists := list "apiServer.to" "database.to" "temporal.to" }}
{{- include "org-api-operator.peerProblems" (dict "policy" $values.networkPolicy "lists" $lists) }}
{{- end }}
{{- $rules := $values.monitoring.rules }}
{{- if and $values.monitoring.enabled $rules.enabled (not $rules.runbookBaseUrl) }}
- monitoring.rules.runbookBaseUrl is empty: give the URL of the runbooks, for example
{{- " https://git.example.com/org-api/blob/main/charts/org-api-operator/runbooks" }}
{{- end }}
{{- $set := dict }}
{{- $of := dict "root" . "component" "operator" "own" (omit .Values "global") }}
{{- range include "org-api-operator.env" $of | fromYamlArray }}{{ $_ := set $set .name true }}{{ end }}
{{- include "org-api-operator.podProblems" (merge (dict "set" $set) $of) }}
{{- end -}}
