{{/* What every pod may reach: the name servers. Takes the section networkPolicy. */}}
{{- define "library.dnsEgress" -}}
- to:
    {{- toYaml .dns.to | nindent 4 }}
  ports:
    - {port: {{ .dns.port | int }}, protocol: UDP}
    - {port: {{ .dns.port | int }}, protocol: TCP}
{{- end -}}

{{/* One server, at its port. Takes its section of networkPolicy. */}}
{{- define "library.serverEgress" -}}
- to:
    {{- toYaml .to | nindent 4 }}
  ports:
    - port: {{ .port | int }}
{{- end -}}

{{/*
Servers without peers, a line each: an empty list would allow all peers in a NetworkPolicy, and none in
these charts. Takes {policy, servers}: the section networkPolicy and names of servers in it.
*/}}
{{- define "library.peerProblems" -}}
{{- range .servers }}
{{- if not (get $.policy .).to }}
- networkPolicy.{{ . }}.to is empty: name the peers by ipBlock, namespaceSelector or podSelector; an empty
{{- " list allows no peer" }}
{{- end }}
{{- end }}
{{- end -}}
