// CloudStack's Go client as its users use it. One line per claim; the first broken one ends the run.
//
// usage: suite HOST:PORT API-KEY SECRET-KEY
package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/apache/cloudstack-go/v2/cloudstack"
)

type client struct{ *cloudstack.CloudStackClient }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func hold(holds bool, what any) {
	if !holds {
		panic(what)
	}
}

func only(id string, count int, err error) string {
	hold(err == nil && count == 1, fmt.Sprintf("%d found: %v", count, err))
	return id
}

func refused(err error, code string) {
	hold(err != nil && strings.Contains(err.Error(), code), err)
}

func main() {
	url, key, secret := "http://"+os.Args[1]+"/client/api", os.Args[2], os.Args[3]
	waits := client{cloudstack.NewAsyncClient(url, key, secret, true)}
	waits.AsyncTimeout(60)
	asks := client{cloudstack.NewClient(url, key, secret, true)}
	number := 0
	claim := func(what string) {
		number++
		fmt.Printf("%d. %s\n", number, what)
	}

	zones := must(asks.Zone.ListZones(asks.Zone.NewListZonesParams()))
	hold(zones.Count == 1 && zones.Zones[0].Name == "zone-1", zones)
	zone := only(asks.Zone.GetZoneID("zone-1"))
	claim("cloudstack-go signs what the server verifies, and finds by name")

	wrong := cloudstack.NewClient(url, key, "wrong", true)
	_, err := wrong.Zone.ListZones(wrong.Zone.NewListZonesParams())
	refused(err, "401")
	_, err = asks.Host.ListHosts(asks.Host.NewListHostsParams())
	refused(err, "432")
	claim("cloudstack-go is refused with the server's codes")

	offering := only(asks.NetworkOffering.GetNetworkOfferingID("DefaultIsolatedNetworkOfferingWithSourceNatService"))
	network := must(asks.Network.CreateNetwork(asks.Network.NewCreateNetworkParams("go-net", offering, zone)))
	hold(network.State == "Allocated", network.State)
	size := only(asks.ServiceOffering.GetServiceOfferingID("Small Instance"))
	image := only(asks.Template.GetTemplateID("ubuntu-2404-kube-v1.36.0", "executable", zone))
	order := waits.VirtualMachine.NewDeployVirtualMachineParams(size, image, zone)
	order.SetName("go-vm")
	order.SetNetworkids([]string{network.Id})
	order.SetUserdata(base64.StdEncoding.EncodeToString([]byte("#cloud-config\n")))
	machine := must(waits.VirtualMachine.DeployVirtualMachine(order))
	hold(machine.State == "Running" && machine.Nic[0].Networkid == network.Id, machine)
	claim("cloudstack-go deploys a machine and waits for its job")

	order = asks.VirtualMachine.NewDeployVirtualMachineParams(size, image, zone)
	order.SetName("go-vm-2")
	order.SetNetworkids([]string{network.Id})
	taken := must(asks.VirtualMachine.DeployVirtualMachine(order))
	hold(taken.JobID != "" && taken.Id != "", taken)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		job := must(asks.Asyncjob.QueryAsyncJobResult(asks.Asyncjob.NewQueryAsyncJobResultParams(taken.JobID)))
		if job.Jobstatus == 1 {
			break
		}
		hold(job.Jobstatus == 0 && time.Now().Before(deadline), job)
	}
	found, count, err := asks.VirtualMachine.GetVirtualMachineByID(taken.Id)
	hold(err == nil && count == 1 && found.State == "Running", err)
	claim("cloudstack-go deploys another and polls its job by hand")

	for _, id := range []string{machine.Id, taken.Id} {
		must(waits.VirtualMachine.DestroyVirtualMachine(waits.VirtualMachine.NewDestroyVirtualMachineParams(id)))
	}
	left := must(asks.VirtualMachine.ListVirtualMachines(asks.VirtualMachine.NewListVirtualMachinesParams()))
	hold(left.Count == 0, left)
	// The network goes when the server has expunged its machines.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		_, err := waits.Network.DeleteNetwork(waits.Network.NewDeleteNetworkParams(network.Id))
		if err == nil {
			break
		}
		hold(time.Now().Before(deadline), err)
	}
	claim("cloudstack-go destroys both, and the network after them")
	fmt.Println("DONE")
}
