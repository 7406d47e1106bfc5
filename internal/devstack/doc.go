// Package devstack runs the services of everyday work in the background where no container daemon answers: Apache Kafka
// and PostgreSQL on the ports and with the credentials of compose.yaml.
//
// Owns: a process that holds both services, starting it and waiting until they answer, stopping it.
//
// Does not own: the services themselves (packages embedded and apache), or their data, which it never deletes.
//
// Fails with: the errors of those packages, and the end of the holder's log.
package devstack
