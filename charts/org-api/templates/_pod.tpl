{{/*
Parts that the pods of all components share. Each takes {root, component, own}: `own` is the
component's section of the values.
*/}}

{{/*
The pod's annotations. Settings are in the pod's spec and not in a ConfigMap: during a rollout and
after a rollback, a restarted container of the old version must not read the new version's settings.
The checksum shows which settings a pod has. It includes `secrets.revision`, because the chart
cannot read the contents of Secrets.
*/}}
{{- define "org-api.podAnnotations" -}}
{{- $parts := list (include "org-api.settings" .) (include "org-api.secrets" .) .root.Values.secrets.revision -}}
{{- $settings := join "\n" $parts -}}
{{- merge (dict "checksum/settings" (sha256sum $settings)) .own.podAnnotations | toYaml -}}
{{- end -}}

{{/* Fields of the pod's spec that are the same everywhere. */}}
{{- define "org-api.podSpec" -}}
serviceAccountName: {{ include "org-api.serviceAccount" . }}
automountServiceAccountToken: false
# Variables such as ORG_API_PORT, which Kubernetes would add for the release's own Services, are settings of org-api.
enableServiceLinks: false
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
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
  {{- with .own.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Fields of the container that are the same everywhere. */}}
{{- define "org-api.container" -}}
image: {{ include "org-api.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.containerSecurityContext | nindent 2 }}
resources:
  {{- toYaml .own.resources | nindent 2 }}
env:
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
  {{- with .own.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .own.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: tmp
    mountPath: /tmp
  - name: secrets
    mountPath: /run/secrets/org-api
    readOnly: true
  {{- with .own.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
