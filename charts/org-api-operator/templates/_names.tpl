{{/* What _library.tpl asks for: labels, variables and volumes of the one component. */}}
{{- define "org-api-operator.ownLabels" -}}{}{{- end -}}

{{- define "org-api-operator.env" -}}
- name: REGION
  value: {{ .root.Values.region | quote }}
- name: OPERATOR_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: OPERATOR_IDENTITY
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: LOG_LEVEL
  value: {{ .root.Values.logLevel | quote }}
{{- if .root.Values.webhooks.enabled }}
- name: OPERATOR_WEBHOOKS
  value: "true"
{{- end }}
{{- end -}}

{{- define "org-api-operator.volumes" -}}[]{{- end -}}
{{- define "org-api-operator.volumeMounts" -}}[]{{- end -}}
