{{/* What the pods of all components have. Each takes {root, component, own}, as in _library.tpl. */}}

{{/*
The pod's annotations. Settings are in the pod's spec and not in a ConfigMap: during a rollout and
after a rollback, a restarted container of the old version must not read the new version's settings.
The checksum shows which settings a pod has. It includes `secrets.revision`, because the chart
cannot read the contents of Secrets.
*/}}
{{- define "org-api.podAnnotations" -}}
{{- $parts := list (include "org-api.settings" .) (include "org-api.secrets" .) .root.Values.secrets.revision -}}
{{- $settings := join "\n" $parts -}}
{{- merge (dict "checksum/settings" (sha256sum $settings)) (.own.podAnnotations | default dict) | toYaml -}}
{{- end -}}

{{- define "org-api.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $name, $secret := include "org-api.secrets" . | fromYaml }}
      - secret:
          name: {{ $secret.name | quote }}
          items:
            - key: {{ $secret.key | quote }}
              path: {{ $name }}
      {{- end }}
{{- end -}}

{{- define "org-api.env" -}}
{{- range $name, $value := include "org-api.settings" . | fromYaml }}
{{- if $value }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- range $name, $secret := include "org-api.secrets" . | fromYaml }}
- name: {{ $name }}_FILE
  value: /run/secrets/org-api/{{ $name }}
{{- end }}
{{- end -}}

{{- define "org-api.volumeMounts" -}}
- name: tmp
  mountPath: /tmp
- name: secrets
  mountPath: /run/secrets/org-api
  readOnly: true
{{- end -}}
