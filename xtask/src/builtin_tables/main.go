// Command main prints facts about the Go types behind the built-in Kubernetes kinds: field names, wire
// numbers, JSON and patch behaviour, OpenAPI list and map types, defaults. It prints no descriptions.
//
// Format, one block per type, sorted by name:
//
//	NAME struct                    followed by one indented line per field
//	NAME = TYPE                    a named type that is not a struct
//	NAME special                   a type with its own JSON form, known to the reader by name
//
// Field line: JSON NUMBER FLAG TYPE [FACT]...
// JSON is the JSON name, or "^" for an inlined struct. NUMBER is the protobuf field number, 0 if none. FLAG is
// "-" (always written), "?" (omitempty), "0" (omitzero) or "?0" (both). TYPE is Go's, with short package names.
// Facts: req, def=JSON, fmt=F, enum=JSON, lt=, keys=, mt=, ps=, pk=; on the block's own line also mt= and union=JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

var roots = []any{
	core.Namespace{}, core.NamespaceList{}, core.Secret{}, core.SecretList{}, core.ConfigMap{}, core.ConfigMapList{},
	core.Event{}, core.EventList{}, core.ServiceAccount{}, core.ServiceAccountList{}, core.Node{}, core.NodeList{},
	core.Pod{}, core.PodList{}, core.Service{}, core.ServiceList{}, core.Endpoints{}, core.EndpointsList{},
	core.PersistentVolume{}, core.PersistentVolumeList{}, core.PersistentVolumeClaim{}, core.PersistentVolumeClaimList{},
	core.ReplicationController{}, core.ReplicationControllerList{}, core.ResourceQuota{}, core.ResourceQuotaList{},
	core.LimitRange{}, core.LimitRangeList{}, core.PodTemplate{}, core.PodTemplateList{}, core.Binding{},
	core.ComponentStatus{}, core.ComponentStatusList{}, core.PodAttachOptions{}, core.PodExecOptions{},
	core.PodLogOptions{}, core.PodPortForwardOptions{}, core.PodProxyOptions{}, core.NodeProxyOptions{},
	core.ServiceProxyOptions{},
	apps.Deployment{}, apps.DeploymentList{}, apps.DaemonSet{}, apps.DaemonSetList{}, apps.StatefulSet{},
	apps.StatefulSetList{}, apps.ReplicaSet{}, apps.ReplicaSetList{}, apps.ControllerRevision{}, apps.ControllerRevisionList{},
	batch.Job{}, batch.JobList{}, batch.CronJob{}, batch.CronJobList{},
	coordination.Lease{}, coordination.LeaseList{}, events.Event{}, events.EventList{},
	rbac.Role{}, rbac.RoleList{}, rbac.RoleBinding{}, rbac.RoleBindingList{}, rbac.ClusterRole{}, rbac.ClusterRoleList{},
	rbac.ClusterRoleBinding{}, rbac.ClusterRoleBindingList{},
	apiextensions.CustomResourceDefinition{}, apiextensions.CustomResourceDefinitionList{}, apiextensions.ConversionReview{},
	admissionregistration.MutatingWebhookConfiguration{}, admissionregistration.MutatingWebhookConfigurationList{},
	admissionregistration.ValidatingWebhookConfiguration{}, admissionregistration.ValidatingWebhookConfigurationList{},
	admissionregistration.ValidatingAdmissionPolicy{}, admissionregistration.ValidatingAdmissionPolicyList{},
	admissionregistration.ValidatingAdmissionPolicyBinding{}, admissionregistration.ValidatingAdmissionPolicyBindingList{},
	admissionregistration.MutatingAdmissionPolicy{}, admissionregistration.MutatingAdmissionPolicyList{},
	admissionregistration.MutatingAdmissionPolicyBinding{}, admissionregistration.MutatingAdmissionPolicyBindingList{},
	apiregistration.APIService{}, apiregistration.APIServiceList{},
	authentication.TokenReview{}, authentication.SelfSubjectReview{}, authentication.TokenRequest{},
	authorization.SubjectAccessReview{}, authorization.SelfSubjectAccessReview{}, authorization.LocalSubjectAccessReview{},
	authorization.SelfSubjectRulesReview{},
	discovery.EndpointSlice{}, discovery.EndpointSliceList{},
	flowcontrol.FlowSchema{}, flowcontrol.FlowSchemaList{}, flowcontrol.PriorityLevelConfiguration{},
	flowcontrol.PriorityLevelConfigurationList{},
	policy.PodDisruptionBudget{}, policy.PodDisruptionBudgetList{}, policy.Eviction{},
	storage.StorageClass{}, storage.StorageClassList{}, storage.VolumeAttachment{}, storage.VolumeAttachmentList{},
	storage.CSIDriver{}, storage.CSIDriverList{}, storage.CSINode{}, storage.CSINodeList{},
	storage.CSIStorageCapacity{}, storage.CSIStorageCapacityList{}, storage.VolumeAttributesClass{}, storage.VolumeAttributesClassList{},
	resource.DeviceClass{}, resource.DeviceClassList{}, resource.ResourceClaim{}, resource.ResourceClaimList{},
	resource.ResourceClaimTemplate{}, resource.ResourceClaimTemplateList{}, resource.ResourceSlice{}, resource.ResourceSliceList{},
	scheduling.PriorityClass{}, scheduling.PriorityClassList{},
	certificates.CertificateSigningRequest{}, certificates.CertificateSigningRequestList{},
	node.RuntimeClass{}, node.RuntimeClassList{},
	networking.Ingress{}, networking.IngressList{}, networking.IngressClass{}, networking.IngressClassList{},
	networking.NetworkPolicy{}, networking.NetworkPolicyList{}, networking.IPAddress{}, networking.IPAddressList{},
	networking.ServiceCIDR{}, networking.ServiceCIDRList{},
	autoscaling.Scale{}, autoscalingv2.HorizontalPodAutoscaler{}, autoscalingv2.HorizontalPodAutoscalerList{},
	autoscaling.HorizontalPodAutoscaler{}, autoscaling.HorizontalPodAutoscalerList{},
	meta.Status{}, meta.DeleteOptions{}, meta.ListOptions{}, meta.GetOptions{}, meta.CreateOptions{}, meta.UpdateOptions{},
	meta.PatchOptions{}, meta.ApplyOptions{}, meta.WatchEvent{}, meta.APIGroup{}, meta.APIGroupList{}, meta.APIResourceList{},
	meta.APIVersions{}, meta.Table{}, meta.TableOptions{}, meta.PartialObjectMetadata{}, meta.PartialObjectMetadataList{},
	meta.List{}, runtime.Unknown{},
}

type printer struct {
	definitions map[string]common.OpenAPIDefinition
	seen        map[reflect.Type]bool
	blocks      map[string]string
}

func short(t reflect.Type) string {
	p := t.PkgPath()
	for _, prefix := range []string{"k8s.io/api/", "k8s.io/apimachinery/pkg/apis/", "k8s.io/apimachinery/pkg/api/",
		"k8s.io/apimachinery/pkg/util/", "k8s.io/apimachinery/pkg/", "k8s.io/apiextensions-apiserver/pkg/apis/",
		"k8s.io/kube-aggregator/pkg/apis/"} {
		if rest, ok := strings.CutPrefix(p, prefix); ok {
			return rest + "." + t.Name()
		}
	}
	fail("type outside of the known packages: %s.%s", p, t.Name())
	return ""
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		fail("%v", err)
	}
	return strings.ReplaceAll(string(b), " ", "\\u0020") // spaces separate the words of a line
}

var bytesType = reflect.TypeOf([]byte{})

func (p *printer) expr(t reflect.Type) string {
	if t.Name() != "" && t.PkgPath() != "" {
		p.visit(t)
		return short(t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + p.expr(t.Elem())
	case reflect.Slice:
		if t == bytesType {
			return "[]byte"
		}
		return "[]" + p.expr(t.Elem())
	case reflect.Map:
		return "map[" + p.expr(t.Key()) + "]" + p.expr(t.Elem())
	case reflect.Interface:
		return "any"
	default:
		return t.Kind().String()
	}
}

// message says whether a named type that is no struct is a protobuf message of its own.
func message(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ Unmarshal([]byte) error }]())
}

func custom(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func modelName(t reflect.Type) string {
	if m, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return m.OpenAPIModelName()
	}
	return ""
}

func (p *printer) visit(t reflect.Type) {
	if p.seen[t] {
		return
	}
	p.seen[t] = true
	name := short(t)
	var b strings.Builder
	switch {
	case t.Name() == "Interface" || t.Kind() == reflect.Interface:
		fmt.Fprintf(&b, "%s special\n", name)
	case t.Kind() == reflect.Struct:
		definition, documented := p.definitions[modelName(t)]
		if custom(t) {
			fmt.Fprintf(&b, "%s special", name)
		} else {
			fmt.Fprintf(&b, "%s struct", name)
		}
		if documented {
			if !custom(t) {
				checkKnown(name, definition.Schema)
			}
			if mt, ok := definition.Schema.Extensions["x-kubernetes-map-type"]; ok {
				fmt.Fprintf(&b, " mt=%s", mt)
			}
			if u, ok := definition.Schema.Extensions["x-kubernetes-unions"]; ok {
				fmt.Fprintf(&b, " union=%s", compact(u))
			}
			if custom(t) {
				fmt.Fprintf(&b, " type=%s", strings.Join(definition.Schema.Type, ","))
				if f := definition.Schema.Format; f != "" {
					fmt.Fprintf(&b, " fmt=%s", f)
				}
			}
		}
		b.WriteString("\n")
		if !custom(t) || strings.HasPrefix(t.Name(), "JSONSchemaProps") {
			p.fields(&b, t, definition.Schema)
		}
	default:
		suffix := ""
		if message(t) {
			suffix = " message"
		}
		// The underlying type, spelled without the name.
		var under string
		switch t.Kind() {
		case reflect.Slice:
			under = "[]" + p.expr(t.Elem())
		case reflect.Map:
			under = "map[" + p.expr(t.Key()) + "]" + p.expr(t.Elem())
		default:
			under = t.Kind().String()
		}
		fmt.Fprintf(&b, "%s = %s%s\n", name, under, suffix)
	}
	p.blocks[name] = b.String()
}

func (p *printer) fields(b *strings.Builder, t reflect.Type, schema spec.Schema) {
	required := map[string]bool{}
	for _, r := range schema.Required {
		required[r] = true
	}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		tag := strings.Split(f.Tag.Get("json"), ",")
		if tag[0] == "-" {
			continue
		}
		name, flag := tag[0], ""
		for _, option := range tag[1:] {
			switch option {
			case "omitempty":
				flag += "?"
			case "omitzero":
				flag += "0"
			case "inline":
			default:
				fail("%s.%s: json option %q", t, f.Name, option)
			}
		}
		if flag == "" {
			flag = "-"
		}
		if name == "" {
			if f.Anonymous {
				name = "^"
			} else {
				name = f.Name
			}
		}
		number := "0"
		if pb := strings.Split(f.Tag.Get("protobuf"), ","); len(pb) > 1 {
			number = pb[1]
		}
		fmt.Fprintf(b, " %s %s %s %s", name, number, flag, p.expr(f.Type))
		if required[name] {
			b.WriteString(" req")
		}
		if s, ok := schema.Properties[name]; ok {
			facts(b, t.Name()+"."+name, f, s)
		} else if len(schema.Properties) > 0 && name != "^" {
			fail("%s.%s is not in the OpenAPI definition", t, name)
		}
		if ps := f.Tag.Get("patchStrategy"); ps != "" {
			fmt.Fprintf(b, " ps=%s", ps)
		}
		if pk := f.Tag.Get("patchMergeKey"); pk != "" {
			fmt.Fprintf(b, " pk=%s", pk)
		}
		b.WriteString("\n")
	}
}

func facts(b *strings.Builder, name string, f reflect.StructField, s spec.Schema) {
	checkKnown(name, s)
	if s.Default != nil {
		fmt.Fprintf(b, " def=%s", compact(s.Default))
	}
	if s.Format != "" {
		fmt.Fprintf(b, " fmt=%s", s.Format)
	}
	if len(s.Enum) > 0 {
		fmt.Fprintf(b, " enum=%s", compact(s.Enum))
	}
	if s.Items != nil && s.Items.Schema != nil && len(s.Items.Schema.Enum) > 0 {
		fmt.Fprintf(b, " ienum=%s", compact(s.Items.Schema.Enum))
	}
	if lt, ok := s.Extensions["x-kubernetes-list-type"]; ok {
		fmt.Fprintf(b, " lt=%s", lt)
	}
	if keys, ok := s.Extensions["x-kubernetes-list-map-keys"]; ok {
		var names []string
		for _, k := range keys.([]interface{}) {
			names = append(names, k.(string))
		}
		fmt.Fprintf(b, " keys=%s", strings.Join(names, ","))
	}
	if mt, ok := s.Extensions["x-kubernetes-map-type"]; ok {
		fmt.Fprintf(b, " mt=%s", mt)
	}
	for tag, extension := range map[string]string{"patchStrategy": "x-kubernetes-patch-strategy", "patchMergeKey": "x-kubernetes-patch-merge-key"} {
		if v, ok := s.Extensions[extension]; ok && v != f.Tag.Get(tag) {
			fail("%s: %s is %v in OpenAPI, %s in Go", name, extension, v, f.Tag.Get(tag))
		}
	}
}

// checkKnown stops at any fact this program would silently lose.
func checkKnown(name string, s spec.Schema) {
	for k := range s.Extensions {
		switch k {
		case "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-unions",
			"x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key":
		default:
			fail("%s: extension %s=%v", name, k, s.Extensions[k])
		}
	}
	s.Description, s.Default, s.Format, s.Enum, s.Extensions = "", nil, "", nil, nil
	s.Type, s.Properties, s.Required, s.Items, s.AdditionalProperties, s.Ref, s.AllOf = nil, nil, nil, nil, nil, spec.Ref{}, nil
	if b, _ := json.Marshal(s); string(b) != "{}" {
		fail("%s: %s", name, b)
	}
}

func main() {
	p := &printer{
		definitions: openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef(path) }),
		seen:        map[reflect.Type]bool{},
		blocks:      map[string]string{},
	}
	for _, root := range roots {
		p.visit(reflect.TypeOf(root))
	}
	var names []string
	for name := range p.blocks {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Print(p.blocks[name])
	}
}
