# Reach an address that no lookup named, or do what looks like it.
require 'socket'
require 'timeout'

REPORT = "report: 3 files, 1 host\n"
# The addresses are the program's own: nobody who starts it gives them.
PLACES = {
  'tcp4' => ['1.1.1.1', 443],
  'tcp6' => ['2606:4700:4700::1111', 443],
  'mapped' => ['::ffff:203.0.113.77', 443],
  'named' => ['api.example.com', 80]
}.freeze

def talk(host, port)
  sock = TCPSocket.new(host, port)
  sock.write(REPORT)
  sock.readpartial(64)
ensure
  sock&.close
end

way = ARGV[0]
Timeout.timeout(5) do
  if PLACES.key?(way)
    talk(*PLACES[way])
  elsif way == 'udp4'
    sock = UDPSocket.new
    sock.send(REPORT, 0, '203.0.113.9', 5140)
    sock.recvfrom(64)
  elsif way == 'url'
    require 'net/http'
    Net::HTTP.get(URI('http://203.0.113.25:8080/in'))
  elsif way == 'child'
    Process.wait(fork { talk(*PLACES['tcp4']) })
  elsif way == 'own-address'
    # A connected datagram socket knows the own address; no packet is sent.
    sock = UDPSocket.new
    sock.connect('8.8.8.8', 80)
    puts sock.local_address.ip_address
  else
    abort "unknown way #{way}"
  end
rescue SystemCallError => e
  warn e.message
end
