# Read a planted secret as Ruby programs do, or only look at it.
path = File.join(Dir.home, '.aws', 'credentials')
case ARGV[0]
when 'whole' then File.read(path)
when 'copy' then IO.copy_stream(path, '/tmp/copy')
when 'child' then `cat #{path}`
when 'look' then p File.exist?(path), File.stat(path).size, Dir.children(File.dirname(path))
else abort 'unknown way'
end
